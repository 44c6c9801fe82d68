"""What the server keeps of a visitor: what a run of theirs changed, not every component of every page."""

from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState
from gradio_client import Client

from explorer.text import Text
from pages._page import Ctx, Page
from pages._sessions import CAPACITY, Sessions
from pages._site import build_site, launch_options
from tests.browser.serving import free_port


def build(ctx: Ctx) -> None:
    """Three texts; an event counts in a state and changes the last one."""
    words, shown, count = gr.Textbox("a"), gr.Textbox("b"), gr.State(0)

    def more(text: str, before: int) -> tuple[int, Any]:
        return before + 1, gr.update(value=f"{text} {before + 1}", label="changed")

    words.submit(more, [words, count], [count, shown], api_name=f"more_{ctx.lang}")


@pytest.fixture(scope="module")
def site() -> Iterator[gr.Blocks]:
    pages = (Page("", 0, 0, Text("x", "x"), build),)
    site = build_site(pages).queue(max_size=64)
    site.launch(server_name="127.0.0.1", server_port=free_port(), prevent_thread_lock=True, **launch_options(pages))
    yield site
    site.close()


def test_a_visitor_costs_what_a_run_has_changed(site: gr.Blocks) -> None:
    one, two = (Client(site.local_url, verbose=False) for _ in range(2))
    seen = [client.predict("x", api_name="/more_en")["value"] for client in (one, one, two)]
    assert seen == ["x 1", "x 2", "x 1"], "each has a state of its own"
    holder = site.app.state_holder
    assert isinstance(holder, Sessions) and holder.capacity == CAPACITY
    assert {one.session_hash, two.session_hash} <= set(holder.session_data)
    for client in (one, two):
        listed = holder.session_data[client.session_hash].config_values
        assert len(listed) == 3 < len(site.blocks), "the state, the text that came in, the one that changed"
    assert len(SessionState(site).config_values) == len(site.blocks), "what Gradio itself would keep"


def test_who_was_silent_for_longest_goes_first(site: gr.Blocks) -> None:
    sessions = Sessions()
    sessions.set_blocks(site)
    sessions.capacity = 2
    for name in ("a", "b", "a", "c"):
        sessions[name]
    assert list(sessions.session_data) == list(sessions.time_last_used) == ["a", "c"]
