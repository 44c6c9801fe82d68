"""The explorer: `python app.py [--port N] [--host H] [--no-model]`."""

import argparse
import importlib.metadata
import os
import socket
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the pages, serve them, then load the model in the background."""
    options = _options(arguments)
    _check_packages()
    _check_address(options.host, options.port or 0)
    _reach_itself_directly(options.host)
    # Read by Gradio while it is imported; without it the server itself calls other hosts.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    from pages import PAGES
    from pages._site import build_site, launch_options

    site = build_site(PAGES).queue(max_size=64, default_concurrency_limit=16)
    try:
        _, url, _ = site.launch(
            server_name=options.host, server_port=options.port, prevent_thread_lock=True, **launch_options(PAGES)
        )
    except OSError:
        _refuse(f"no free port at {options.host}; name one with --port")
    print(f"KV Cache Explorer: {url}", flush=True)  # noqa: T201
    if not options.no_model:
        threading.Thread(target=_preload, name="preload", daemon=True).start()
    site.block_thread()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="app.py", description="KV Cache Explorer")
    on_spaces = "SPACE_ID" in os.environ
    parser.add_argument("--port", type=_port, help="1 to 65535; default: the first free one from 7860")
    parser.add_argument(
        "--host", default="0.0.0.0" if on_spaces else "127.0.0.1", help="0.0.0.0 serves the whole network"
    )
    parser.add_argument("--no-model", action="store_true", help="do not load the model before it is asked for")
    return parser.parse_args(arguments)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _refuse(message)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no port: expected 1 to 65535")
    return int(text)


def _check_packages() -> None:
    """Refuse Hugging Face's package `kernels`: transformers would take our folder of that name for it."""
    try:
        importlib.metadata.version("kernels")
    except importlib.metadata.PackageNotFoundError:
        return
    _refuse("the package 'kernels' is installed and clashes with this project's folder: run pip uninstall kernels")


def _check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on; port 0 is any."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror:
        _refuse(f"--host {host[:60]}: no such address here; 127.0.0.1 serves this machine, 0.0.0.0 the network")
    except OSError as error:
        _refuse(f"{host[:60]}, port {port or 'any'} cannot be used ({error.strerror}); name another with --port")


def _reach_itself_directly(host: str) -> None:
    """Keep the server's own start-up check away from a proxy that the environment names: it would fail there."""
    for name in ("no_proxy", "NO_PROXY"):
        known = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = ",".join([*known, "127.0.0.1", "localhost", host])


def _preload() -> None:
    from explorer.engine import runtime

    runtime.preload()


def _refuse(line: str) -> NoReturn:
    print(f"app.py: {line}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


if __name__ == "__main__":
    main()
