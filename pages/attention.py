"""Attention and its cache: one lookup on the real model, prefill and decode step by step, and what the cache saves."""

from html import escape
from typing import Any

from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs.catalog import model_named
from explorer.specs.units import binary
from explorer.text import Lang, Text
from pages._badge import MARKS, WORDS
from pages._blocks import badge, boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page
from pages.attention_answers import answers
from pages.attention_reading import MAX_CHARS, MAX_TOKENS

# Where a first look at a sentence finds something: layer and query head, both counted from 0; the last token asks.
CAPITAL = {
    "name": "capital",
    "text": "The capital of France is Paris, and the capital of Italy is",
    "layer": 16,
    "head": 0,
}
MADE_UP = {"name": "name", "text": "A wug named Zorblax lived by the sea. Every morning Zorb", "layer": 18, "head": 6}
CHINESE = {"name": "chinese", "text": "巴黎在法国，东京在日本。巴黎在", "layer": 18, "head": 6}
EMOJI = {"name": "emoji", "text": "I love parties 🎉 and my friends love parties", "layer": 18, "head": 6}
EXAMPLES = (CAPITAL, MADE_UP, CHINESE, EMOJI)
FIRST: dict[Lang, dict[str, Any]] = {"en": CAPITAL, "zh": CHINESE}

RESERVED_TOKENS, USED_TOKENS = 4096, 200
SMALL, LARGE = "smollm2-135m", "llama-3.1-8b"  # 22.5 KiB and 128 KiB a token in bf16
NUM_YEARS = 4


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    _lookup(ctx)
    _steps(ctx)
    _measure(ctx)
    _bottleneck(ctx)
    boundaries(ctx, "limits")
    prose(ctx, "next")


def _lookup(ctx: Ctx) -> None:
    subheading(ctx, "lookup-title")
    question(ctx, "ask-lookup")
    props = {
        "examples": EXAMPLES,
        "first": EXAMPLES.index(FIRST[ctx.lang]),
        "maxTokens": MAX_TOKENS,
        "maxChars": MAX_CHARS,
        "measured": mark(Origin.MEASURED, ctx.lang),
    }
    explorable(ctx, "attention", props, "attention", server_functions=answers(ctx.lang))
    _beside(ctx, ("lookup", "lookup-see"), "lookup-formula")


def _steps(ctx: Ctx) -> None:
    subheading(ctx, "steps-title")
    question(ctx, "ask-steps")
    props = {origin.value: mark(origin, ctx.lang) for origin in (Origin.MEASURED, Origin.COMPUTED)}
    explorable(ctx, "attention-steps", props, "attention-steps")
    _beside(ctx, ("steps", "steps-cost"), "steps-formula")


def _measure(ctx: Ctx) -> None:
    subheading(ctx, "measure-title")
    prose(ctx, "see-recompute")
    lab_panel(ctx, "cache-vs-recompute")
    prose(ctx, "see-bytes")
    lab_panel(ctx, "cache-bytes")


def _bottleneck(ctx: Ctx) -> None:
    subheading(ctx, "bottleneck-title")
    prose(ctx, "bottleneck")
    html(reserved(ctx), classes="kv-attn-reserved")
    prose(ctx, "waste")
    html(years(ctx))


def _beside(ctx: Ctx, left_sections: tuple[str, ...], formula: str) -> None:
    left, right = columns()
    with left:
        for section in left_sections:
            prose(ctx, section)
    with right:
        prose(ctx, formula)


def mark(origin: Origin, lang: Lang) -> dict[str, str]:
    """What a widget needs to draw the badge of `origin`."""
    return {"name": origin.value, "mark": MARKS[origin], "word": WORDS[origin].get(lang)}


def reserved(ctx: Ctx) -> str:
    """The bar of a reserved and mostly unused cache, with its numbers, as HTML."""
    share = 100 * USED_TOKENS / RESERVED_TOKENS
    used, idle = f"{share:.1f} %", f"{100 - share:.1f} %"
    sizes = {
        f"{name}_{word}": binary(cache_bytes(model_named(model), tokens, 1, "bf16").total_bytes)
        for name, model in (("small", SMALL), ("large", LARGE))
        for word, tokens in (("used", USED_TOKENS), ("reserved", RESERVED_TOKENS))
    }
    line = ctx.t("reserve-line", reserved=f"{RESERVED_TOKENS:,}", used=USED_TOKENS, share=used, idle=idle, **sizes)
    alt = escape(ctx.t("reserve-alt", share=used), quote=True)
    bar = f'<div class="kv-attn-room" role="img" aria-label="{alt}"><i style="width:{share:.3f}%"></i></div>'
    return f'{bar}<p class="kv-note">{escape(line)} {badge(Origin.COMPUTED, ctx.lang)}</p>'


def years(ctx: Ctx) -> str:
    """The short history as an HTML list."""
    rows = "".join(
        f"<li><b>{escape(ctx.t(f'year-{i}'))}</b><span>{escape(ctx.t(f'year-{i}-text'))}</span></li>"
        for i in range(1, NUM_YEARS + 1)
    )
    title = escape(ctx.t("years-title"))
    return f'<section class="kv-attn-history"><h3>{title}</h3><ol class="kv-attn-years">{rows}</ol></section>'


PAGE = Page("attention", 1, 1, Text("Attention and its cache", "注意力与它的缓存"), build)
