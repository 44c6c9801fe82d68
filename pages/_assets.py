"""Our own scripts, styles and plotly.js, served from memory under a URL that holds a hash and no path of this machine.

`./kv-assets/<hash>/<name>` exists for the scripts of assets/js, for the two bundles that each page loads, `kv.js`
(assets/js/kv.js and kv-*.js) and `kv.css` (all of assets/css), and for plotly.min.js of the installed wheel. Nothing is
looked up on disk by a request's name, so there is nothing to traverse. A changed file changes its hash, hence the
immutable cache.
"""

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

import brotli
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pages import _content

PREFIX = "/kv-assets/"
PLOTLY = "plotly.min.js"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
# Level 5 takes 0.1 s for plotly's 4.8 MB, once; level 9 would take four times as long for 4% less.
_BROTLI_LEVEL = 5


@dataclass(frozen=True)
class Asset:
    """One file that a page may load.

    Attributes:
        name: its name in the URL.
        body: its bytes.
    """

    name: str
    body: bytes

    @cached_property
    def digest(self) -> str:
        """The first 12 hex digits of its sha256."""
        return hashlib.sha256(self.body).hexdigest()[:12]

    @cached_property
    def packed(self) -> bytes:
        """Its bytes, compressed with brotli; made on first use."""
        return brotli.compress(self.body, quality=_BROTLI_LEVEL)

    @property
    def href(self) -> str:
        """A relative link to it, right from every page."""
        return f".{PREFIX}{self.digest}/{self.name}"

    @property
    def media_type(self) -> str:
        """Its content type."""
        return _TYPES[Path(self.name).suffix]


@cache
def _table() -> dict[str, Asset]:
    scripts_ = sorted((_content.ASSETS / "js").glob("*.js"))
    found = {path.name: path.read_bytes() for path in scripts_ if not _shared(path)}
    found["kv.js"] = b"\n".join(path.read_bytes() for path in sorted(filter(_shared, scripts_), key=_rank))
    found["kv.css"] = b"\n".join(
        path.read_bytes() for path in sorted((_content.ASSETS / "css").glob("*.css"), key=_rank)
    )
    found[PLOTLY] = _plotly().read_bytes()
    return {name: Asset(name, body) for name, body in found.items()}


def _shared(path: Path) -> bool:
    return path.stem == "kv" or path.stem.startswith("kv-")


def _rank(path: Path) -> tuple[bool, bool, str]:
    """kv.js first, then the frame's files, then the pages' own."""
    return path.stem != "kv", not _shared(path), path.name


def _plotly() -> Path:
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None, "plotly is not installed"
    return Path(spec.origin).parent / "package_data" / PLOTLY


def names() -> frozenset[str]:
    """The names of all assets."""
    return frozenset(_table())


def get(name: str) -> Asset:
    """The asset called `name`.

    Raises:
        KeyError: there is none.
    """
    return _table()[name]


def scripts() -> dict[str, str]:
    """Links to the scripts that a page loads when it needs them, by name without `.js`."""
    return {name[:-3]: get(name).href for name in sorted(names()) if name.endswith(".js") and name != "kv.js"}


class AssetServer:
    """ASGI middleware that answers `/kv-assets/...` and passes everything else on."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the table, or pass on."""
        path = route_path(scope)
        if scope["type"] != "http" or not path.startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        await _answer(path.removeprefix(PREFIX), scope)(scope, receive, send)


def route_path(scope: Scope) -> str:
    """The request's path below any sub-path that the app is mounted on."""
    path: str = scope.get("path", "")
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


def _answer(wanted: str, scope: Scope) -> Response:
    digest, _, name = wanted.partition("/")
    asset = _table().get(name)
    if scope["method"] not in ("GET", "HEAD"):
        return Response(status_code=405, headers={"Allow": "GET, HEAD"})
    if asset is None or asset.digest != digest:
        return Response("Not found", status_code=404, media_type="text/plain")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    accepted = dict(scope["headers"]).get(b"accept-encoding", b"")
    if b"br" not in accepted:
        return Response(asset.body, headers=headers, media_type=asset.media_type)
    return Response(asset.packed, headers=headers | {"Content-Encoding": "br"}, media_type=asset.media_type)
