"""Heads: which Query heads read which Keys and Values, and what each way of sharing leaves in the cache."""

from typing import Any

from explorer.measuring.record import Origin
from explorer.specs.dtypes import DTYPES
from explorer.text import Lang, Text
from pages import heads_tables
from pages._badge import MARKS, WORDS
from pages._blocks import boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page

NUM_HEADS = (1, 2, 4, 8, 12, 16, 24, 28, 32, 40, 48, 64, 96, 128)
LIMITS = {"latent": (0, 1_024), "rope": (0, 128), "span": (1, 4), "head_dim": (8, 512), "layers": (1, 128)}
_SHAPE = {"heads": 32, "kv_heads": 32, "head_dim": 128, "latent": 0, "rope": 64, "span": 1, "layers": 32}
PRESETS: dict[str, dict[str, int]] = {
    "mha": _SHAPE,
    "gqa": _SHAPE | {"kv_heads": 8},
    "mqa": _SHAPE | {"kv_heads": 1},
    "mla": _SHAPE | {"heads": 128, "kv_heads": 128, "latent": 512, "layers": 60},  # DeepSeek-V2, arXiv:2405.04434
    "cla": _SHAPE | {"kv_heads": 8, "span": 2},
}
START = "gqa"
OUTPUTS = ("kind", "elements", "layer", "owners", "total", "mha", "ratio", "intensity")


def widget_props(lang: Lang) -> dict[str, Any]:
    """What the drawing in the browser computes from."""
    return {
        "start": START,
        "presets": PRESETS,
        "heads": list(NUM_HEADS),
        "limits": {name: list(ends) for name, ends in LIMITS.items()},
        "dtypes": [{"name": form.name, "bytes": form.element_bytes} for form in DTYPES.values()],
        "outputs": list(OUTPUTS),
        "badge": {"mark": MARKS[Origin.COMPUTED], "word": WORDS[Origin.COMPUTED].get(lang)},
    }


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    explorable(ctx, "heads", widget_props(ctx.lang), "heads")
    question(ctx, "ask")
    prose(ctx, "sharing")
    subheading(ctx, "models-title")
    html(heads_tables.models_table(ctx))
    prose(ctx, "models")
    subheading(ctx, "latent-title")
    prose(ctx, "latent")
    subheading(ctx, "absorb-title")
    prose(ctx, "absorb")
    explorable(ctx, "heads-absorb", {}, "heads-absorb")
    question(ctx, "ask-absorb")
    prose(ctx, "rope")
    _beside(ctx, heads_tables.orders_table(ctx), "orders")
    lab_panel(ctx, "mla-absorption")
    subheading(ctx, "baselines-title")
    _beside(ctx, heads_tables.baselines_table(ctx), "baselines")
    html(heads_tables.sizes_table(ctx))
    prose(ctx, "sizes")
    prose(ctx, "quoted")
    subheading(ctx, "layers-title")
    _beside(ctx, heads_tables.sharing_table(ctx), "layers")
    subheading(ctx, "measure-title")
    prose(ctx, "measure")
    lab_panel(ctx, "heads")
    question(ctx, "ask-measure")
    boundaries(ctx, "limits")
    prose(ctx, "sources")
    question(ctx, "next")


def _beside(ctx: Ctx, table: str, section: str) -> None:
    """A table and the words about it."""
    left, right = columns()
    with left:
        html(table)
    with right:
        prose(ctx, section)


PAGE = Page("heads", 1, 2, Text("Heads: MHA, MQA, GQA, MLA, CLA", "注意力头：MHA、MQA、GQA、MLA、CLA"), build)
