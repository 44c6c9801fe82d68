"""FlashAttention: softmax in blocks with three running values, and what is never stored because of it."""

from typing import Any

from explorer.measuring.record import Origin
from explorer.specs.dtypes import DTYPES
from explorer.text import Lang, Text
from pages import flash_attention_tables as tables
from pages._badge import MARKS, WORDS
from pages._blocks import boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page

# Scores of one Query, as the reader may type them. "late" forces a rescaling, "huge" overflows unless m is subtracted.
PRESETS: dict[str, str] = {
    "late": "1.2, 0.4, 2, -0.6, 0.9, 1.5, 0.1, 2.3, 0.7, 5.5, 1.1, -0.3",
    "rising": "-2.5, -1.8, -1.2, -0.5, 0.1, 0.6, 1.3, 1.9, 2.4, 3, 3.7, 4.2",
    "equal": "1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5",
    "huge": "96, 101, 88, 110, 93, 120, 99, 105, 117, 90, 112, 108",
    "masked": "-inf, -inf, -inf, -inf, 0.8, 1.9, -0.4, 0.3, 2.6, 1.1, 0.5, 1.4",
}
START = "late"
MOST_KEYS, SCORE_LIMIT, VALUE_LIMIT, BLOCK, CUT = 24, 1_000, 100, 4, 8
# The Keys' Values; where there are fewer than Keys, they begin again.
VALUES: tuple[tuple[float, float], ...] = (
    *((1.0, 0.0), (0.5, -1.0), (-1.0, 2.0), (0.0, 1.5), (2.0, -0.5), (-0.5, 1.0)),
    *((1.5, 1.5), (-2.0, 0.5), (0.0, -1.5), (3.0, 1.0), (-1.5, -1.0), (1.0, 2.5)),
)

STORED = ("bf16", "fp16", "fp32")  # what scores are computed and stored in; narrower ones are not
LIMITS = {"tokens": 1_048_576, "heads": 256, "batch": 64}
BYTES_START = {"phase": "prefill", "tokens": 32_768, "heads": 128, "batch": 1, "dtype": "bf16", "head_dim": 128}
HEAD_DIMS = (32, 64, 96, 128, 192, 256)
TILES = (16, 32, 64, 128, 256)
TILE = 128
OUTPUTS = ("head", "all", "output", "lse", "kept", "ratio", "flops", "tile")


def softmax_props(lang: Lang) -> dict[str, Any]:
    """What the step-by-step softmax and the joining of two parts compute from."""
    return {
        "presets": PRESETS,
        "start": START,
        "scores": PRESETS[START],
        "values": ", ".join(f"({x:g}, {y:g})" for x, y in VALUES),
        "dim": len(VALUES[0]),
        "block": BLOCK,
        "cut": CUT,
        "most": MOST_KEYS,
        "limit": SCORE_LIMIT,
        "valueLimit": VALUE_LIMIT,
        "badges": _badges(lang),
    }


def bytes_props(lang: Lang) -> dict[str, Any]:
    """What the estimator of stored and moved bytes starts with."""
    return {
        "start": BYTES_START | {"block_q": TILE},
        "limits": LIMITS,
        "dtypes": [{"name": name, "bytes": DTYPES[name].element_bytes} for name in STORED],
        "headDims": list(HEAD_DIMS),
        "tiles": list(TILES),
        "outputs": list(OUTPUTS),
        "badges": _badges(lang),
    }


def _badges(lang: Lang) -> dict[str, dict[str, str]]:
    return {
        origin.value: {"mark": MARKS[origin], "word": WORDS[origin].get(lang)}
        for origin in (Origin.COMPUTED, Origin.TOY)
    }


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    explorable(ctx, "flash-attention", softmax_props(ctx.lang), "flash-attention")
    question(ctx, "ask")
    _beside(ctx, "online", "online-formula")
    subheading(ctx, "bytes-title")
    explorable(ctx, "flash-attention-bytes", bytes_props(ctx.lang), "flash-attention-bytes")
    question(ctx, "ask-bytes")
    _beside(ctx, "stored", "moved")
    subheading(ctx, "measure-title")
    prose(ctx, "measure")
    lab_panel(ctx, "flash-attention")
    prose(ctx, "see")
    subheading(ctx, "phases-title")
    html(tables.phases_table(ctx))
    prose(ctx, "phases")
    subheading(ctx, "merge-title")
    prose(ctx, "merge")
    explorable(ctx, "flash-attention-merge", softmax_props(ctx.lang), "flash-attention-merge")
    question(ctx, "ask-merge")
    subheading(ctx, "quoted-title")
    html(tables.quoted_table(ctx))
    prose(ctx, "quoted")
    subheading(ctx, "others-title")
    html(tables.others_table(ctx))
    prose(ctx, "others")
    boundaries(ctx, "limits")
    prose(ctx, "sources")
    question(ctx, "next")


def _beside(ctx: Ctx, left_section: str, right_section: str) -> None:
    left, right = columns()
    with left:
        prose(ctx, left_section)
    with right:
        prose(ctx, right_section)


PAGE = Page("flash-attention", 3, 3, Text("FlashAttention", "FlashAttention"), build)
