"""The lab panel: "Measure it here". Drawn from a lab's own declaration, the same for every lab.

    lab_panel(ctx, "cache-bytes")      # controls, Measure and Stop, rows and figure as they come, their provenance

The browser draws it (assets/js/lab-panel.js): controls are native and write the address, so that a link carries the
settings; downloads are made in the page from the Record. The server is asked how long a run takes, to run it, to stop.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import gradio as gr

from explorer.labs.base import LABS
from explorer.measuring import gpu
from explorer.measuring.lock import MOST_WAITING
from pages import _lab_job
from pages._lab_declaration import anchor, declaration
from pages._lab_result import words
from pages._page import Ctx

# Constant, as in pages/_explorable.py: the state reaches the widget as data, never as markup.
_TEMPLATE = '<div class="kv-widget" data-ready="0"></div>'
_MOUNT = "KV.mount(element, props, watch, server, trigger)"


def lab_panel(ctx: Ctx, name: str, *, deadline_s: float = _lab_job.DEADLINE_S) -> gr.HTML:
    """Place the panel of one lab; its element's id is `lab-<name>`, which is also its anchor.

    Args:
        ctx: the page.
        name: the lab's name.
        deadline_s: seconds that one visitor's run may take.

    Raises:
        InputError: there is no such lab.
        KeyError: a column has no title.
    """
    lang = ctx.lang

    # `server` calls these with whatever was sent; both check it.
    def plan(values: Any) -> dict[str, Any]:
        return _lab_job.plan(name, values, lang, deadline_s)

    def end_run(run_id: Any) -> bool:
        return _lab_job.stop(run_id)

    async def measure(event: gr.EventData, request: gr.Request) -> AsyncIterator[dict[str, Any]]:
        async with aclosing(_lab_job.measure(name, event._data, _session(request), lang, deadline_s)) as states:
            async for state in states:
                yield state

    def measure_on_zero_gpu(event: gr.EventData) -> Iterator[dict[str, Any]]:
        yield from _lab_job.measure_on_zero_gpu(name, event._data, lang, deadline_s)

    panel = gr.HTML(
        {"declared": declaration(LABS[name], lang)},  # type: ignore[arg-type]
        html_template=_TEMPLATE,
        js_on_load=_MOUNT,
        apply_default_css=False,
        elem_id=anchor(name),
        elem_classes=["kv-html"],
        server_functions=[plan, end_run],
        widget={"name": "lab-panel", "strings": words(lang)},
    )
    running = panel.submit(
        measure_on_zero_gpu if gpu.ZERO_GPU else measure,
        None,
        panel,
        show_progress="hidden",
        api_visibility="private",
        concurrency_id="device",
        # Who waits is told so by the device lock's queue, in the page's language; Gradio's only bounds how many.
        concurrency_limit=1 if gpu.ZERO_GPU else MOST_WAITING,
    )
    # For a press of Stop before the run has begun: takes it out of Gradio's queue.
    panel.stop(None, None, None, cancels=[running], api_visibility="private")
    return panel


def _session(request: gr.Request) -> str:
    """Whose run it is: the page's session, or for a caller without one its address."""
    if request.session_hash:
        return request.session_hash
    return f"address {request.client.host if request.client else ''}"
