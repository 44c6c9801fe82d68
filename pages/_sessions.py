"""What the server keeps of each visitor: next to nothing.

Gradio remembers every session that asked the server something, up to a capacity, and for each of them the configuration
of all components on all pages: here 1.2 MB and 65 ms, for a link to a page's state that this site does not offer.
"""

from types import SimpleNamespace
from typing import Any

from gradio.state_holder import SessionState, StateHolder
from starlette.types import ASGIApp, Receive, Scope, Send

CAPACITY = 1_000  # sessions; the one that was silent for longest goes first, and begins anew if it comes back


class Sessions(StateHolder):
    """Gradio's, with sessions that hold only what a run of theirs has changed."""

    def __getitem__(self, session_id: str) -> SessionState:
        if session_id not in self.session_data:
            self.session_data[session_id] = SessionState(_Unlisted(self.blocks.default_config))  # type: ignore[arg-type]
        return super().__getitem__(session_id)


class _Unlisted(SimpleNamespace):
    """A site as `SessionState` reads it: all components are there, none is to be copied ahead of time."""

    def __init__(self, default_config: Any):
        super().__init__(default_config=default_config, blocks={})


class KeepsLittle:
    """Middleware that gives its app `Sessions` before the app answers anything."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as before."""
        site = scope.get("app")
        if site is not None and not isinstance(site.state_holder, Sessions):
            sessions = Sessions()
            sessions.set_blocks(site.get_blocks())
            site.state_holder = sessions
        await self.app(scope, receive, send)
