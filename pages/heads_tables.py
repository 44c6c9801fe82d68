"""The tables of the page "Heads": MLA's three baselines, both orders of multiplication, models, and CLA beside GQA."""

from dataclasses import dataclass
from html import escape

from explorer.estimators.memory import cache_bytes
from explorer.estimators.roofline import score_multiplications
from explorer.measuring.record import Origin
from explorer.specs import units
from explorer.specs.latent import LatentAttention
from explorer.specs.layers import FullAttention, LayerKind, SharedFromOwner
from explorer.specs.model import ModelSpec
from pages._blocks import badge
from pages._page import Ctx

LATENT = LatentAttention(512, 64)


@dataclass(frozen=True)
class Published:
    """A model as its publisher describes it.

    Attributes:
        title: display name.
        year: of its release.
        layers: how many.
        heads: Query heads.
        layer: what one layer keeps.
        params: number of weights as published.
    """

    title: str
    year: int
    layers: int
    heads: int
    layer: LayerKind
    params: str

    def bytes_per_token(self) -> int:
        """What one token keeps in bf16."""
        spec = ModelSpec(self.title, (self.layer,) * self.layers, self.heads, 1)
        return cache_bytes(spec, 1).total_bytes


# config.json of each model on huggingface.co; Llama 2 arXiv:2307.09288, Llama 3 arXiv:2407.21783, Mistral 2310.06825,
# Qwen2.5 arXiv:2412.15115, DeepSeek-V3 arXiv:2412.19437. All with heads of 128.
GROUPED = (
    Published("Llama 2 7B", 2023, 32, 32, FullAttention(32, 128, 128), "7B"),
    Published("Llama 2 13B", 2023, 40, 40, FullAttention(40, 128, 128), "13B"),
    Published("Llama 2 70B", 2023, 80, 64, FullAttention(8, 128, 128), "70B"),
    Published("Mistral 7B", 2023, 32, 32, FullAttention(8, 128, 128), "7B"),
    Published("Llama 3.1 8B", 2024, 32, 32, FullAttention(8, 128, 128), "8B"),
    Published("Llama 3.1 70B", 2024, 80, 64, FullAttention(8, 128, 128), "70B"),
    Published("Llama 3.1 405B", 2024, 126, 128, FullAttention(8, 128, 128), "405B"),
)
COMPARED = (
    GROUPED[-1],
    Published("Qwen2.5 72B", 2024, 80, 64, FullAttention(8, 128, 128), "72B"),
    Published("DeepSeek-V3", 2024, 61, 128, LATENT, "671B"),
)
# What an MHA with DeepSeek's 128 heads would keep, by what is taken for a head: (name, Key, Value).
BASELINES = (("guessed", 56, 56), ("assumed", 128, 128), ("own", 192, 128))


def models_table(ctx: Ctx) -> str:
    """Query heads for each KV head in published models."""
    head = [ctx.t(f"models-{name}") for name in ("model", "year", "kind", "heads", "kv", "ratio", "token")]
    rows = []
    for model in GROUPED:
        assert isinstance(model.layer, FullAttention)
        kv = model.layer.num_kv_heads
        kind = "MHA" if kv == model.heads else "GQA"
        ratio = f"{model.heads // kv}×"
        size = units.binary(model.bytes_per_token())
        rows.append([model.title, str(model.year), kind, str(model.heads), str(kv), ratio, size])
    return table(head, rows, ctx.t("models-caption"), _both(ctx), "is-dated")


def sizes_table(ctx: Ctx) -> str:
    """A large GQA model, a middle one and an MLA model: bytes of one token."""
    head = [ctx.t(f"sizes-{name}") for name in ("model", "kind", "params", "layer", "layers", "token")]
    rows = []
    for model in COMPARED:
        kind, kept = ("MLA", "512 + 64") if model.layer is LATENT else ("GQA", "2 × 8 × 128")
        size = model.bytes_per_token()
        row = [model.title, kind, model.params, kept, str(model.layers)]
        rows.append([*row, ctx.t("bytes", n=units.count(size), size=units.binary(size))])
    return table(head, rows, ctx.t("sizes-caption"), _both(ctx))


def baselines_table(ctx: Ctx) -> str:
    """Against which MHA is MLA that many times smaller?"""
    head = [ctx.t(f"baselines-{name}") for name in ("what", "elements", "ratio")]
    kept, rows = LATENT.bytes_at(1, 1), []
    for name, key_dim, value_dim in BASELINES:
        whole = FullAttention(128, key_dim, value_dim).bytes_at(1, 1)
        formula = f"128 × ({key_dim} + {value_dim}) = {units.count(whole)}"
        rows.append([ctx.t(f"baselines-{name}"), formula, f"{whole / kept:.1f}×"])
    return table(head, rows, ctx.t("baselines-caption", n=kept), badge(Origin.COMPUTED, ctx.lang), "is-first-text")


def orders_table(ctx: Ctx) -> str:
    """Multiplications of one DeepSeek-V2 head, expanding every cached latent or absorbing the matrix once."""
    head = [ctx.t(f"orders-{name}") for name in ("tokens", "expand", "absorb", "ratio")]
    rows = []
    for kv_len in (1, 128, 4_096, 131_072):
        expanded, absorbed = score_multiplications(128, 512, kv_len)
        row = [units.tokens(kv_len), units.count(expanded), units.count(absorbed), f"{expanded / absorbed:.2f}×"]
        rows.append(row)
    return table(head, rows, ctx.t("orders-caption"), badge(Origin.COMPUTED, ctx.lang))


def sharing_table(ctx: Ctx) -> str:
    """Both directions of sharing: fewer KV heads in a layer, fewer layers with a cache."""
    spans = (1, 2, 4)
    head = [ctx.t("sharing-kind"), *(ctx.t("sharing-none" if span == 1 else "sharing-span", n=span) for span in spans)]
    rows = []
    for name, kv in (("MHA, 32", 32), ("GQA, 8", 8), ("MQA, 1", 1)):
        sizes = [units.binary(shared_bytes(FullAttention(kv, 128, 128), 32, span)) for span in spans]
        rows.append([ctx.t("sharing-row", kind=name), *sizes])
    return table(head, rows, ctx.t("sharing-caption"), badge(Origin.COMPUTED, ctx.lang))


def shared_bytes(layer: LayerKind, num_layers: int, span: int) -> int:
    """Bytes of one token in bf16 when every `span` layers share what the first of them keeps."""
    layers = (layer if i % span == 0 else SharedFromOwner(i - i % span, layer) for i in range(num_layers))
    return cache_bytes(ModelSpec("shared", tuple(layers), 1, 1), 1).total_bytes


def table(head: list[str], rows: list[list[str]], caption: str, marks: str, classes: str = "") -> str:
    """A table whose first column names the row and whose others are numbers, with its caption and origins."""
    top = "".join(f'<th scope="col">{escape(words)}</th>' for words in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in others) + "</tr>"
        for first, *others in rows
    )
    return (
        f'<p class="kv-note">{escape(caption)} {marks}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table hd-table {classes}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _both(ctx: Ctx) -> str:
    return f"{badge(Origin.QUOTED, ctx.lang)} {badge(Origin.COMPUTED, ctx.lang)}"
