"""The tables of the page "Cache size": two worked examples, and where the devices' numbers come from."""

from fractions import Fraction
from html import escape

from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs import units
from explorer.specs.catalog import devices, model_named
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from pages._blocks import badge
from pages._page import Ctx

HEADS = (("MHA", 32), ("GQA", 8), ("MQA", 1))
NUM_TOKENS = 131_072
ROW = ' scope="row"'


def heads_table(ctx: Ctx) -> str:
    """MHA, GQA and MQA at one length: what one KV head more costs."""
    head = [ctx.t(f"heads-{name}") for name in ("kind", "kv", "token", "total", "ratio", "layer")]
    rows = []
    for name, num_kv_heads in HEADS:
        layer = FullAttention(num_kv_heads, 128, 128)
        spec = ModelSpec(name, (layer,) * 32, num_heads=32, hidden_size=4_096)
        token, total = cache_bytes(spec, 1).total_bytes, cache_bytes(spec, NUM_TOKENS).total_bytes
        share = Fraction(num_kv_heads, HEADS[0][1])
        sizes = [units.binary(size) for size in (token, total, layer.bytes_at(1, 2))]
        rows.append([name, units.count(num_kv_heads), *sizes[:2], str(share), sizes[2]])
    return _table(head, rows, ctx.t("heads-caption"), badge(Origin.COMPUTED, ctx.lang))


def growth_table(ctx: Ctx) -> str:
    """The documents' table: one shape from one token to 131,072."""
    head = [ctx.t(f"growth-{name}") for name in ("tokens", "size", "decimal", "times")]
    spec = model_named("llama-2-7b")
    per_token = units.binary(cache_bytes(spec, 1).total_bytes)
    rows = []
    for tokens in (1, 1_024, 4_096, NUM_TOKENS):
        total = cache_bytes(spec, tokens).total_bytes
        rows.append(
            [units.tokens(tokens), units.binary(total), units.decimal(total), f"{per_token} × {units.count(tokens)}"]
        )
    return _table(head, rows, ctx.t("growth-caption"), badge(Origin.COMPUTED, ctx.lang))


def devices_table(ctx: Ctx) -> str:
    """The quoted numbers of the devices: what the data sheets and drivers say, and how each was checked."""
    head = [ctx.t(f"sources-{name}") for name in ("device", "memory", "bandwidth", "source", "checked")]
    rows = [
        [
            device.title,
            f"{units.binary(device.memory_bytes)} = {units.decimal(device.memory_bytes)}",
            f"{units.decimal(device.bandwidth_bytes_per_s)}/s",
            f"{device.source}; {device.memory_source}",
            device.verified.get(ctx.lang),
        ]
        for device in devices().values()
    ]
    return _table(head, rows, ctx.t("sources-devices-caption"), badge(Origin.QUOTED, ctx.lang), num_text=2)


def _table(head: list[str], rows: list[list[str]], caption: str, mark: str, num_text: int = 0) -> str:
    """A table with its caption and origin; the last `num_text` columns are running text, the others numbers."""

    def cell(tag: str, column: int, words: str, scope: str = "") -> str:
        text = ' class="is-text"' if column >= len(head) - num_text else ""
        return f"<{tag}{text}{scope}>{escape(words)}</{tag}>"

    top = "".join(cell("th", column, words, ' scope="col"') for column, words in enumerate(head))
    body = ""
    for first, *others in rows:
        cells = "".join(cell("td", column, words) for column, words in enumerate(others, start=1))
        body += f"<tr>{cell('th', 0, first, ROW)}{cells}</tr>"
    return (
        f'<p class="kv-note">{escape(caption)} {mark}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table cs-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
