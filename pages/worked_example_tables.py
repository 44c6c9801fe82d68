"""The fixed tables of the worked example: what to check, which metric judges which axis, where numbers come from."""

from html import escape

from explorer.measuring.record import Origin
from explorer.specs import units
from explorer.specs.catalog import devices, model_named
from pages._badge import badge
from pages._page import Ctx

CHECKS = ("blocks", "others", "kv")
AXES = ("shape", "values", "memory", "network", "execution")


def checks_table(ctx: Ctx) -> str:
    """Before memory is called short: what to look at, where it shows, what then may help."""
    return _words(ctx, "checks", CHECKS, ("what", "seen", "then"))


def axes_table(ctx: Ctx) -> str:
    """The axes along which a cache can be changed, with examples and with the metric that tells whether it helped."""
    return _words(ctx, "axes", AXES, ("axis", "methods", "metric"))


def sources_table(ctx: Ctx, names: tuple[str, ...]) -> str:
    """The quoted numbers of models and devices, and how each was checked."""
    rows = []
    for spec in map(model_named, names):
        size = spec.weight_bytes() or 0
        stated = ctx.t(
            "sources-model",
            params=units.count(spec.weight_params or 0),
            bytes=units.decimal(size),
            stated=spec.max_positions,
        )
        rows.append(
            [spec.title, stated, f"{spec.source}, {spec.date}", spec.verified.get(ctx.lang) if spec.verified else ""]
        )
    for device in devices().values():
        memory = f"{units.binary(device.memory_bytes)} = {units.decimal(device.memory_bytes)}"
        stated = ctx.t("sources-device", memory=memory, bandwidth=f"{units.decimal(device.bandwidth_bytes_per_s)}/s")
        rows.append([device.title, stated, f"{device.source}; {device.memory_source}", device.verified.get(ctx.lang)])
    head = [ctx.t(f"sources-{name}") for name in ("name", "stated", "source", "checked")]
    return _table(head, rows, ctx.t("sources-caption"), badge(Origin.QUOTED, ctx.lang))


def _words(ctx: Ctx, table: str, rows: tuple[str, ...], columns: tuple[str, ...]) -> str:
    head = [ctx.t(f"{table}-{column}") for column in columns]
    body = [[ctx.t(f"{table}-{row}-{column}") for column in columns] for row in rows]
    return _table(head, body, ctx.t(f"{table}-caption"), "")


def _table(head: list[str], rows: list[list[str]], caption: str, mark: str) -> str:
    top = "".join(f'<th scope="col">{escape(words)}</th>' for words in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(words)}</td>" for words in others) + "</tr>"
        for first, *others in rows
    )
    label = escape(caption, quote=True)
    return (
        f'<p class="kv-note we-caption">{escape(caption)} {mark}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="kv-table is-text we-words"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
