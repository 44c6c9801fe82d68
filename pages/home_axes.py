"""The six axes along which a KV cache can be changed, as a map into the explorer."""

from dataclasses import dataclass
from html import escape

from pages._page import Ctx


@dataclass(frozen=True)
class Axis:
    """One thing that a method can change. Its words are the strings `axis.<key>.*` of the home page.

    Attributes:
        key: names its strings.
        pages: slugs of the pages that treat it today; empty is said plainly.
    """

    key: str
    pages: tuple[str, ...] = ()


AXES = (
    Axis("structure", ("heads", "cache-size")),
    Axis("numeric"),
    Axis("retention"),
    Axis("compute", ("attention", "flash-attention", "roofline")),
    Axis("memory", ("paged-attention", "worked-example")),
    Axis("serving", ("worked-example",)),
)
FACTS = ("changes", "methods", "limit")


def axes_map(ctx: Ctx) -> str:
    """The map as HTML: per axis what it changes, examples, its limit, the pages there are and the topics to come."""
    return '<div class="home-grid home-axes">' + "".join(_axis(ctx, axis) for axis in AXES) + "</div>"


def _axis(ctx: Ctx, axis: Axis) -> str:
    rows = [(ctx.t(f"axis.{fact}"), escape(ctx.t(f"axis.{axis.key}.{fact}"))) for fact in FACTS]
    if axis.pages:
        rows.append((ctx.t("axis.today"), ", ".join(_link(ctx, slug) for slug in axis.pages)))
    rows.append((ctx.t("axis.later"), f'<span class="home-later">{escape(ctx.t(f"axis.{axis.key}.later"))}</span>'))
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{value}</dd>" for label, value in rows)
    name = escape(ctx.t(f"axis.{axis.key}.name"))
    return f'<section class="kv-card"><h3>{name}</h3><dl>{facts}</dl></section>'


def _link(ctx: Ctx, slug: str) -> str:
    title = next(page.title.get(ctx.lang) for page in ctx.pages if page.slug == slug)
    return f'<a href="{escape(ctx.href(slug), quote=True)}">{escape(title)}</a>'
