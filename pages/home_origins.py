"""The key to the five origins, each with an example."""

from html import escape

from explorer.measuring.record import Origin
from explorer.specs.catalog import model_named
from explorer.specs.layers import FullAttention
from explorer.specs.units import count
from pages._badge import MEANINGS, badge
from pages._page import Ctx

BF16_BYTES = 2


def origins_table(ctx: Ctx) -> str:
    """A table of the five: mark, meaning, example."""
    head = "".join(
        f'<th scope="col">{escape(ctx.t(f"origin.col.{key}"))}</th>' for key in ("mark", "meaning", "example")
    )
    rows = "".join(_row(ctx, origin) for origin in Origin)
    return f'<table class="kv-table home-origins"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _row(ctx: Ctx, origin: Origin) -> str:
    values = _computed_example() if origin is Origin.COMPUTED else {}
    example = ctx.t(f"origin.{origin.value}", **values)
    meaning = MEANINGS[origin].get(ctx.lang)
    return (
        f'<tr><th scope="row">{badge(origin, ctx.lang)}</th><td>{escape(meaning)}</td><td>{escape(example)}</td></tr>'
    )


def _computed_example() -> dict[str, object]:
    """The default model's bytes for each token in BF16, from its own specification."""
    model = model_named("smollm2-135m")
    layer = model.layers[0]
    assert isinstance(layer, FullAttention), "the example shows the formula of plain attention"
    per_token = sum(each.bytes_at(1, BF16_BYTES) for each in model.layers)
    return {
        "title": model.title,
        "layers": len(model.layers),
        "heads": layer.num_kv_heads,
        "dim": layer.key_dim,
        "bytes": f"{count(per_token)} B",
    }
