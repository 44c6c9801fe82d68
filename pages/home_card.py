"""The device and model card: what stands behind the measurements, read from the server while the model loads."""

from html import escape
from typing import Any

import gradio as gr

from explorer.measuring.record import Origin
from explorer.specs.units import binary, count, decimal
from explorer.text import Lang
from pages._badge import badge
from pages._content import label
from pages._page import Ctx

POLL_S = 2.0
SETTLED = ("ready", "failed")


def card(ctx: Ctx) -> None:
    """The card: filled when the page opens, asked for again until the model is loaded, then left in peace."""
    lang = ctx.lang
    shown = gr.HTML(_waiting(lang), elem_id="home-card", elem_classes=["kv-html"], apply_default_css=False)
    timer = gr.Timer(POLL_S)

    def refresh() -> tuple[str, gr.Timer]:
        html, settled = read_card(lang)
        return html, gr.Timer(active=not settled)

    quiet: dict[str, Any] = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    ctx.blocks.load(refresh, None, [shown, timer], **quiet)
    timer.tick(refresh, None, [shown, timer], **quiet)


def read_card(lang: Lang) -> tuple[str, bool]:
    """The card's HTML as of now, and whether nothing more will change by itself.

    Names products and versions only: no path, no host, no user.
    """
    # Imported here: they bring torch, which the app loads in the background after its first page stands.
    from explorer.engine.runtime import status
    from explorer.measuring.device import pick_device
    from explorer.measuring.provenance import device_facts, versions

    now = status()
    rows = _device_rows(device_facts(pick_device()), versions(), lang) + _model_rows(now.model, lang)
    rows.append((_t(lang, "card.state"), f'<span role="status">{_state(now, lang)}</span>'))
    return _table(rows), now.state in SETTLED


def _state(now: Any, lang: Lang) -> str:
    text = escape(now.text.get(lang))
    if not now.total_bytes:
        return text
    done, total = binary(now.done_bytes), binary(now.total_bytes)
    bar = f'<progress value="{now.done_bytes}" max="{now.total_bytes}" aria-hidden="true"></progress>'
    return f"{text} {bar} {done} / {total}"


def _device_rows(facts: dict[str, Any], versions: dict[str, str | None], lang: Lang) -> list[tuple[str, str]]:
    device = f"{facts['device']} ({facts['device_kind'].upper()})"
    named = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    return [
        (_t(lang, "card.device"), escape(device)),
        (_t(lang, "card.threads"), escape(str(facts["threads"]))),
        (_t(lang, "card.versions"), escape(named)),
    ]


def _model_rows(model: Any, lang: Lang) -> list[tuple[str, str]]:
    keys = ("card.model", "card.weights", "card.hash", "card.size")
    if model is None:
        return [(_t(lang, key), f'<span class="kv-note">{escape(_t(lang, "card.unknown"))}</span>') for key in keys]
    files = model.files
    size = f"{binary(model.weight_bytes)} ({decimal(model.weight_bytes)}, {count(model.weight_bytes)} B)"
    counted = escape(_t(lang, "card.counted"))
    values = (
        f"{escape(files.name)}, {escape(model.dtype)}",
        escape(_t(lang, f"card.source.{files.source}").format(detail=files.detail)),
        f"<code>{escape(files.weight_hash)}</code>",
        f'{escape(size)} {badge(Origin.MEASURED, lang)} <span class="kv-note">{counted}</span>',
    )
    return [(_t(lang, key), value) for key, value in zip(keys, values, strict=True)]


def _waiting(lang: Lang) -> str:
    return _table([(_t(lang, "card.state"), escape(_t(lang, "card.waiting")))])


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f'<tr><th scope="row">{escape(label)}</th><td>{value}</td></tr>' for label, value in rows)
    return f'<table class="kv-table home-card"><tbody>{cells}</tbody></table>'


def _t(lang: Lang, key: str) -> str:
    return label("home", lang, key)
