"""The page frame without a browser: pages build in both languages, texts are complete, documents are right."""

import json
import re
import time
from itertools import product
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from explorer.measuring.record import Origin
from explorer.text import LANGUAGES, Lang, Text
from pages import PAGES, _content
from pages._badge import MARKS, badge
from pages._blocks import heading
from pages._document import rewrite, script_json
from pages._figure import as_value, figure
from pages._page import Ctx, Page
from pages._site import build_site

ASSETS = _content.ASSETS
HOSTILE = "${alert(1)}</script><img src=x onerror=alert(1)>{{x}}"
GRADIO_DOCUMENT = (
    '<!doctype html><html\n\tlang="en"\n\tstyle="x"\n><head><meta charset="utf-8" /><base href="./" />'
    '<meta\n\tproperty="og:image" content="https://example.org/x.jpg"\n/><meta name="twitter:site" content="@x" />'
    '<link rel="manifest" href="/manifest.json" /><script>window.gradio_config = {"title":"kv-page-title"};</script>'
    '</head><body style="x"><gradio-app eager="true"></gradio-app><script>let a;</script></body></html>'
)


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return build_site(PAGES).get_config_file()


def test_every_page_builds_on_its_own_route(config: dict[str, Any]) -> None:
    routes = {path for path, *_ in config["pages"]}
    assert routes == {page.path(lang) for page, lang in product(PAGES, LANGUAGES)}
    assert not [path for path in routes if path.startswith("_")]
    assert "__i18n__" not in json.dumps(config, default=str)


def test_a_page_holds_its_own_parts_only(config: dict[str, Any]) -> None:
    def ids(node: dict[str, Any]) -> set[int]:
        return {node["id"]}.union(*(ids(child) for child in node.get("children", [])))

    shown = {path: ids(page["layout"]) - {config["page"][""]["layout"]["id"]} for path, page in config["page"].items()}
    for path, page in config["page"].items():
        assert shown[path] <= set(page["components"]), path
        for item in config["dependencies"]:
            if item["id"] in page["dependencies"]:
                assert {*item["inputs"], *item["outputs"]} <= set(page["components"]), (path, item["api_name"])
    assert sum(map(len, shown.values())) == len(set().union(*shown.values()))


def test_a_value_that_is_a_function_is_refused() -> None:
    page = Page("", 0, 0, Text("x", "x"), lambda ctx: gr.Number(lambda: 1) and None)
    with pytest.raises(ValueError, match=r"ctx\.blocks\.load"):
        build_site((page,))


def test_no_event_is_a_public_endpoint_by_accident(config: dict[str, Any]) -> None:
    public = [item["api_name"] for item in config["dependencies"] if item.get("api_visibility", "public") == "public"]
    assert public == ["estimate"]  # pages/_api.py


@pytest.mark.parametrize("kind", ["strings", "content"])
def test_both_languages_have_the_same_keys(kind: str) -> None:
    names = {path.stem for lang in LANGUAGES for path in (ASSETS / kind / lang).iterdir()}
    assert names >= {page.name for page in PAGES}
    for name in sorted(names):
        read = _content.strings if kind == "strings" else _content.sections
        english, chinese = read(name, "en"), read(name, "zh")
        assert english.keys() == chinese.keys(), name
        for key in english:
            fields = [sorted(re.findall(r"\{(\w*)\}", text)) for text in (english[key], chinese[key])]
            assert kind == "content" or fields[0] == fields[1], f"{name}: {key}"


def test_every_page_has_its_part_and_place_in_the_contents() -> None:
    assert PAGES[0].slug == ""
    for page, lang in product(PAGES, LANGUAGES):
        html = rewrite(GRADIO_DOCUMENT, page, PAGES, lang)
        assert html.count('aria-current="page"') == 1
        for other in PAGES:
            assert f'href="{other.href(lang)}"' in html


def test_a_missing_text_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("", 0, 0, Text("x", "x"), heading)
    for lang, kind in product(LANGUAGES, ("strings", "content")):
        (tmp_path / kind / lang).mkdir(parents=True)
    monkeypatch.setattr(_content, "ASSETS", tmp_path)
    _content.strings.cache_clear()
    _content.sections.cache_clear()
    try:
        with pytest.raises(KeyError, match=r"assets/strings/en/home\.json is missing"):
            build_site((page,))
        (tmp_path / "strings/en/home.json").write_text('{"other": "x"}')
        with pytest.raises(KeyError, match="headline"):
            build_site((page,))
        (tmp_path / "strings/en/home.json").write_text('{"headline": "x"}')
        (tmp_path / "content/en/home.md").write_text("<!-- other -->\nx\n<!-- lede -->\n")
        _content.strings.cache_clear()
        with pytest.raises(KeyError, match="lede"):
            build_site((page,))
    finally:
        _content.strings.cache_clear()
        _content.sections.cache_clear()


def test_a_label_with_a_missing_value_raises() -> None:
    ctx = Ctx("en", Page("frame", 1, 1, Text("x", "x"), heading), None)  # type: ignore[arg-type]
    assert ctx.t("part.place", part=1, name="x") == "Part 1 · x"
    with pytest.raises(KeyError):
        ctx.t("part.place", part=1)
    with pytest.raises(KeyError, match="no string"):
        ctx.t("nothing")
    with pytest.raises(KeyError, match="does not exist"):
        ctx.href("nowhere")


def test_sections_badges_and_links() -> None:
    text = _content.expand("a [[measured]] b [c](page:x)", "en", lambda slug: f"./{slug}")
    assert text == f"a {badge(Origin.MEASURED, 'en')} b [c](./x)"
    with pytest.raises(ValueError, match="guessed"):
        _content.expand("[[guessed]]", "en", str)


@pytest.mark.parametrize(("slug", "part"), [("Two", 1), ("a/b", 1), ("zh-a", 1), ("home", 1), ("_a", 1), ("a", 7)])
def test_a_page_with_a_wrong_address_is_refused(slug: str, part: int) -> None:
    with pytest.raises(ValueError, match=r"slug|part"):
        Page(slug, 1, part, Text("x", "x"), heading)


def test_an_address_that_gradio_uses_is_refused() -> None:
    pages = (Page("", 0, 0, Text("x", "x"), lambda ctx: None), Page("config", 1, 1, Text("x", "x"), lambda ctx: None))
    with pytest.raises(ValueError, match=r"config"):
        build_site(pages)
    with pytest.raises(ValueError, match="home page"):
        build_site(pages[1:])
    with pytest.raises(ValueError, match="reading order"):
        build_site((*pages, *pages[1:]))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_document_of_a_page(lang: Lang) -> None:
    page = Page("a-b", 1, 1, Text('A "quoted" & title', "“题”"), heading)
    html = rewrite(GRADIO_DOCUMENT, page, (PAGES[0], page), lang)
    assert html.count("<html") == 1 and f'<html lang="{"zh-CN" if lang == "zh" else "en"}">' in html
    assert "example.org" not in html and "manifest" not in html and "<base" not in html and "twitter" not in html
    config = json.loads(re.findall(r"gradio_config = (\{.*?\});", html)[0])
    assert config["title"].startswith(page.title.get(lang))
    assert html.index("navigator") < html.index("kv.js") < html.index("gradio_config")
    assert html.index('id="kv-main"') < html.index("<gradio-app") < html.index("kv-foot")


def test_a_document_that_gradio_builds_otherwise_is_noticed() -> None:
    with pytest.raises(ValueError, match="gradio-app"):
        rewrite(GRADIO_DOCUMENT.replace("gradio-app", "other-app"), PAGES[0], PAGES, "en")


def test_data_in_a_script_stays_data() -> None:
    assert json.loads(script_json({"a": HOSTILE + "\u2028"})) == {"a": HOSTILE + "\u2028"}
    assert not set("<>&\u2028") & set(script_json(HOSTILE + "\u2028&"))


def test_a_figure_carries_its_texts_as_data_only() -> None:
    part = figure({"data": [{"name": HOSTILE}]}, alt=HOSTILE, description=HOSTILE, lang="en", elem_id="x")
    assert "$" not in part.html_template + part.css_template and "{{" not in part.html_template
    assert HOSTILE not in part.html_template + str(part.js_on_load)
    assert part.props["figure"]["alt"] == HOSTILE


def test_a_figure_travels_without_plotlys_template() -> None:
    import plotly.graph_objects as go

    value = as_value(go.Figure(go.Scatter(x=[1], y=[2]), {"xaxis": {"title": "t"}}), description="d")
    assert value is not None and set(value) >= {"data", "layout", "description"}
    assert "template" not in value["layout"] and len(json.dumps(value)) < 400
    assert as_value(None) is None


def test_badges_differ_by_mark_word_and_colour() -> None:
    for lang in LANGUAGES:
        made = [badge(origin, lang) for origin in Origin]
        assert len({re.sub(r"<[^>]*>", "", item) for item in made}) == len(Origin) == len(set(MARKS.values()))


def test_sixteen_pages_in_two_languages_build_quickly() -> None:
    real = next(page for page in PAGES if page.slug == "attention")

    def again(ctx: Ctx) -> None:
        real.build(Ctx(ctx.lang, real, ctx.blocks, PAGES))

    pages = (*PAGES, *(Page(f"p-{i}", 100 + i, 6, Text("x", "x"), again) for i in range(16 - len(PAGES))))
    start = time.process_time()
    build_site(pages)
    # A start has 8 s in all and Gradio's import takes 3 of them. CPU time, as others may use the machine.
    assert time.process_time() - start < 3.5
