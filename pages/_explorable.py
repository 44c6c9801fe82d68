"""A browser-side widget: native controls, SVG or canvas, redrawn without asking the server.

    explorable(ctx, "cache-size", {"presets": PRESETS}, "size")        # mounts KV.widgets["cache-size"]

    // assets/js/cache-size.js
    KV.widgets["cache-size"] = function (root, props, kv) {
      const c = kv.controls(root, [{ name: "tokens", kind: "range", label: kv.t("tokens"), unit: kv.t("unit-tokens"),
                                     min: 1, max: 131072, value: 4096, scale: "log2" }], draw);
      const out = root.appendChild(KV.el("output"));
      function draw(v) { out.textContent = KV.bytes(v.tokens * props.bytesPerToken); }
      draw(c.values);
    };

The page's strings travel with it (`kv.t(key)`). An event may set new props: `gr.on(..., outputs=widget)` with a handler
that returns a dict; the widget hears it through `kv.onProps(fn)`. Server functions are called as
`await kv.server.name(argument)`.
"""

from collections.abc import Callable
from typing import Any

import gradio as gr

from pages import _assets
from pages._page import Ctx

# A constant template: props reach the widget as JSON data only, never as markup or code.
_TEMPLATE = '<div class="kv-widget" data-ready="0"></div>'
_MOUNT = "KV.mount(element, props, watch, server, trigger)"


def explorable(
    ctx: Ctx,
    name: str,
    props: dict[str, Any],
    elem_id: str,
    *,
    server_functions: list[Callable[..., Any]] | None = None,
) -> gr.HTML:
    """Mount the widget `name` of `assets/js/<name>.js`.

    Args:
        ctx: the page.
        name: the widget's name and its file's.
        props: JSON data for it.
        elem_id: its id in the page.
        server_functions: Python functions that it may call; each must check its own arguments.

    Raises:
        KeyError: there is no such file.
    """
    if f"{name}.js" not in _assets.names():
        raise KeyError(f"page {ctx.page.name!r}: assets/js/{name}.js is missing")
    return gr.HTML(
        props,  # type: ignore[arg-type]
        html_template=_TEMPLATE,
        js_on_load=_MOUNT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["kv-html"],
        server_functions=server_functions,
        widget={"name": name, "strings": ctx.strings},
    )
