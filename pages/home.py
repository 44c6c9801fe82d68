"""Home: the question that the explorer answers, and the way into it."""

from explorer.measuring.record import Origin
from explorer.specs.catalog import model_named
from explorer.specs.layers import FullAttention
from explorer.text import Lang, Text
from pages._badge import MARKS, WORDS
from pages._blocks import boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._page import Ctx, Page
from pages.home_axes import axes_map
from pages.home_card import card
from pages.home_origins import origins_table

BF16_BYTES = 2
NUM_TOKENS = 128 * 1024
KV_HEADS = (1, 2, 4, 8, 16, 32)
ROUTES = {
    "reader": ("attention", "cache-size", "heads"),
    "teacher": ("cache-size", "heads", "attention"),
    "engineer": ("worked-example", "cache-size", "models", "engine"),
}


def bars_props(lang: Lang) -> dict[str, object]:
    """What the browser needs to draw the bars: the shape of Llama 2 7B, whose 32 KV heads make it the MHA row."""
    model = model_named("llama-2-7b")
    layer = model.layers[0]
    assert isinstance(layer, FullAttention) and layer.num_kv_heads == KV_HEADS[-1], "the MHA row is this model's shape"
    return {
        "layers": len(model.layers),
        "head_dim": layer.key_dim,
        "dtype_bytes": BF16_BYTES,
        "max_tokens": NUM_TOKENS,
        "kv_heads": list(KV_HEADS),
        "rows": {"mha": KV_HEADS[-1], "gqa": 8, "mqa": 1},
        "model": model.title,
        "weight_params": model.weight_params,
        "weight_bytes": model.weight_bytes(8 * BF16_BYTES),
        "badge": {"mark": MARKS[Origin.COMPUTED], "word": WORDS[Origin.COMPUTED].get(lang)},
    }


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    left, right = columns()
    with left:
        explorable(ctx, "home", bars_props(ctx.lang), "home-bars")
    with right:
        prose(ctx, "bars")
        question(ctx, "question")
    boundaries(ctx, "boundaries")
    subheading(ctx, "axes-title")
    prose(ctx, "axes")
    html(axes_map(ctx))
    subheading(ctx, "routes-title")
    html(_routes(ctx))
    subheading(ctx, "reading-title")
    prose(ctx, "reading")
    subheading(ctx, "origins-title")
    prose(ctx, "origins")
    html(origins_table(ctx))
    subheading(ctx, "card-title")
    prose(ctx, "card")
    card(ctx)


def _routes(ctx: Ctx) -> str:
    return '<div class="home-grid home-routes">' + "".join(_route(ctx, who) for who in ROUTES) + "</div>"


def _route(ctx: Ctx, who: str) -> str:
    titles = {page.slug: page.title.get(ctx.lang) for page in ctx.pages}
    links = "".join(f'<li><a href="{ctx.href(slug)}">{titles[slug]}</a></li>' for slug in ROUTES[who])
    title, text = ctx.t(f"route.{who}.title"), ctx.t(f"route.{who}.text")
    return f'<section class="kv-card"><h3>{title}</h3><p>{text}</p><ol>{links}</ol></section>'


PAGE = Page(slug="", order=0, part=0, title=Text("Start here", "从这里开始"), build=build)
