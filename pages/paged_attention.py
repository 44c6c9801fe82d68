"""PagedAttention: the block allocator in the reader's hands, beside one that reserves a piece for each request."""

from typing import Any

from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs.catalog import model_named
from explorer.text import Lang, Text
from pages import paged_attention_play as play
from pages import paged_attention_tables as tables
from pages._badge import MARKS, MEANINGS, WORDS
from pages._blocks import boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page
from pages.paged_attention_actions import LIMITS, MAX_ACTIONS
from pages.paged_attention_scenes import SCENES

MODELS = ("llama-3.1-8b", "qwen3-32b", "smollm2-135m")


def play_props(lang: Lang) -> dict[str, Any]:
    """What the allocator's widget draws with; all states come from the server."""
    return {
        "numBlocks": play.NUM_BLOCKS,
        "blockSize": play.BLOCK_SIZE,
        "script": play.SCRIPT,
        "limits": list(LIMITS),
        "maxActions": MAX_ACTIONS,
        "maxStates": play.MAX_STATES,
        "maxLive": play.MAX_LIVE,
        "scenes": SCENES,
        **_origins(lang),
    }


def size_props(lang: Lang) -> dict[str, Any]:
    """What the block-size figure computes from."""
    specs = {name: model_named(name) for name in MODELS}
    models = [
        {"name": name, "title": spec.title, "bytes": cache_bytes(spec, 1, 1, "bf16").total_bytes}
        for name, spec in specs.items()
    ]
    return {"mixes": tables.MIXES, "models": models, **_origins(lang)}


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    subheading(ctx, "figure-title")
    explorable(ctx, "paged-attention", play_props(ctx.lang), "paged-attention", server_functions=play.answers(ctx.lang))
    question(ctx, "ask-play")
    _beside(ctx, ("play", "wastes"), ("branch", "address"))
    subheading(ctx, "size-title")
    explorable(ctx, "paged-attention-size", size_props(ctx.lang), "paged-attention-size")
    question(ctx, "ask-size")
    prose(ctx, "size")
    subheading(ctx, "prefix-title")
    explorable(ctx, "paged-attention-prefix", _origins(ctx.lang), "paged-attention-prefix")
    question(ctx, "ask-prefix")
    prose(ctx, "prefix")
    subheading(ctx, "measure-title")
    prose(ctx, "see-paged")
    lab_panel(ctx, "paged-attention")
    prose(ctx, "see-fragmentation")
    lab_panel(ctx, "fragmentation")
    subheading(ctx, "waste-quoted-title")
    html(tables.waste_table(ctx))
    prose(ctx, "quoted")
    boundaries(ctx, "limits")
    prose(ctx, "sources")
    question(ctx, "next")


def _beside(ctx: Ctx, left_sections: tuple[str, ...], right_sections: tuple[str, ...]) -> None:
    left, right = columns()
    for column, sections in ((left, left_sections), (right, right_sections)):
        with column:
            for section in sections:
                prose(ctx, section)


def _origins(lang: Lang) -> dict[str, dict[str, str]]:
    both = (Origin.COMPUTED, Origin.TOY)
    return {
        each.value: {
            "name": each.value,
            "mark": MARKS[each],
            "word": WORDS[each].get(lang),
            "meaning": MEANINGS[each].get(lang),
        }
        for each in both
    }


PAGE = Page("paged-attention", 1, 4, Text("PagedAttention", "PagedAttention"), build)
