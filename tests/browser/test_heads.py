"""Heads in a real browser: what it computes equals Python, and what it draws is as large as it says."""

import math
import random
from fractions import Fraction

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from explorer.estimators import roofline
from explorer.estimators.memory import cache_bytes
from explorer.specs.latent import LatentAttention
from explorer.specs.layers import FullAttention, SharedFromOwner
from explorer.specs.model import ModelSpec
from pages.heads import LIMITS, NUM_HEADS, PRESETS
from tests.browser.watching import Visitor, draws_within_a_frame, query

WIDGET = "#heads .kv-widget"
DTYPES = {1: "fp8", 2: "bf16", 4: "fp32"}
JS = """(cases) => cases.map((s) => {
  const m = KV.heads, bytes = [m.elements(s), m.layerBytes(s), m.total(s), m.mha(s)].map(String);
  return [m.kind(s), m.owners(s), ...bytes, m.ratio(s), m.intensity(s)];
})"""
PATHS = """() => {
  const kv = (name) => document.querySelector('.hd-plot .hd-kv ' + name).getAttribute('d');
  const width = (path) => [...path.matchAll(/h([\\d.]+)v/g)].reduce((all, part) => all + Number(part[1]), 0);
  const count = (path) => path.match(/M/g).length;
  const bars = (name) => [...document.querySelectorAll('.hd-plot rect.' + name)].map((r) => +r.getAttribute('width'));
  const row = (selector) => document.querySelector(selector).getAttribute('d');
  return {
    k: width(kv('.hd-k')), keys: count(kv('.hd-k')), queries: count(row('path.hd-q')), ties: count(row('.hd-tie')),
    mha: bars('hd-mha'), c: bars('hd-c'), plain: bars('hd-k'), arrows: document.querySelectorAll('.hd-arrow').length,
  };
}"""


def out(tab: Tab, name: str) -> str:
    return tab.locator(f'{WIDGET} [data-out="{name}"]').inner_text()


def pressed(tab: Tab, name: str) -> None:
    """Choose a preset and wait until it is drawn."""
    tab.click(f"[data-preset={name}]")
    tab.wait_for_selector(f"[data-preset={name}][aria-pressed=true]")


def python(s: dict) -> list:
    """What `JS` gives, by the layer kinds and the estimator."""
    form = DTYPES[s["element_bytes"]]
    full = FullAttention(s["heads"], s["head_dim"], s["head_dim"])
    kept = FullAttention(s["kv_heads"], s["head_dim"], s["head_dim"])
    layer = LatentAttention(s["latent"], s["rope"]) if s["latent"] else kept
    own = [i % s["span"] == 0 for i in range(s["layers"])]
    layers = tuple(layer if mine else SharedFromOwner(i - i % s["span"], layer) for i, mine in enumerate(own))
    total = cache_bytes(ModelSpec("x", layers, 1, 1), 1, 1, form).total_bytes
    mha = cache_bytes(ModelSpec("x", (full,) * s["layers"], 1, 1), 1, 1, form).total_bytes
    kind = "mha" if s["kv_heads"] == s["heads"] else "mqa" if s["kv_heads"] == 1 else "gqa"
    ratio, share = Fraction(max(mha, total), min(mha, total)), Fraction(100 * total, mha)
    which = "same" if ratio == 1 else "larger" if total > mha else "unit" if ratio.denominator == 1 else "percent"
    exact = two(ratio) == ratio and (which != "percent" or two(share) == share)
    one, two_tokens = (work(s, kv_len) for kv_len in (1, 2))  # the difference is what a token adds
    added = Fraction(two_tokens.flops - one.flops, two_tokens.num_bytes - one.num_bytes)
    return [
        "mla" if s["latent"] else kind,
        sum(own),
        *map(str, (layer.bytes_at(1, 1), layer.bytes_at(1, form), total, mha)),
        {"kind": which, "times": text(two(ratio)), "percent": text(two(share)), "exact": exact},
        text(two(added)),
    ]


def work(s: dict, kv_len: int) -> roofline.Work:
    """A decode step's attention in one layer."""
    if s["latent"]:
        return roofline.latent_attention(s["heads"], s["latent"], s["rope"], kv_len, 1, s["element_bytes"])
    return roofline.grouped_attention(s["heads"], s["kv_heads"], s["head_dim"], kv_len, 1, s["element_bytes"])


def two(number: Fraction) -> Fraction:
    """Hundredths, rounded half up."""
    return Fraction(math.floor(100 * number + Fraction(1, 2)), 100)


def text(number: Fraction) -> str:
    """With at most two decimals."""
    return f"{float(number):,.2f}".rstrip("0").rstrip(".")


def test_javascript_equals_python_over_random_settings(visit: Visitor) -> None:
    draw = random.Random(576)
    cases = []
    for _ in range(300):
        heads = draw.choice(NUM_HEADS)
        kv = draw.choice([d for d in range(1, heads + 1) if heads % d == 0])
        numbers = {name: draw.randint(low, high) for name, (low, high) in LIMITS.items()}
        numbers["latent"] *= draw.randint(0, 1)
        cases.append(numbers | {"heads": heads, "kv_heads": kv, "element_bytes": draw.choice([1, 2, 4])})
    cases += [s | {"element_bytes": 2} for s in PRESETS.values()]
    got = visit("heads").page.evaluate(JS, cases)
    for case, js in zip(cases, got, strict=True):
        assert js == python(case), case
    assert {row[0] for row in got} == {"mha", "mqa", "gqa", "mla"}
    assert {row[6]["kind"] for row in got} == {"same", "unit", "percent", "larger"}


def test_presets_by_hand(visit: Visitor) -> None:
    tab = visit("heads").page
    wanted = {
        "mha": ("MHA", "16,384 B (16.00 KiB)", "524,288 B (512.00 KiB)", "the same", "1 FLOP/byte"),
        "gqa": (
            "GQA",
            "4,096 B (4.00 KiB)",
            "131,072 B (128.00 KiB)",
            "1/4 of it; MHA is 4 times as large",
            "4 FLOP/byte",
        ),
        "mqa": ("MQA", "512 B", "16,384 B (16.00 KiB)", "1/32 of it; MHA is 32 times as large", "32 FLOP/byte"),
        "mla": (
            "MLA",
            "1,152 B (1.13 KiB)",
            "69,120 B (67.50 KiB)",
            "about 1.76 % of it; MHA is about 56.89 times as large",
            "241.78 FLOP/byte",
        ),
        "cla": (
            "GQA + CLA 2",
            "4,096 B (4.00 KiB)",
            "65,536 B (64.00 KiB)",
            "1/8 of it; MHA is 8 times as large",
            "4 FLOP/byte",
        ),
    }
    for name, numbers in wanted.items():
        pressed(tab, name)
        assert tuple(out(tab, key) for key in ("kind", "layer", "total", "ratio", "intensity")) == numbers


def test_a_latent_larger_than_mha_is_said_and_drawn_so(visit: Visitor) -> None:
    """1,024 + 128 numbers against 2 x 8 of one head: 72 times as many, and all of it inside the picture."""
    tab = visit("heads?heads=1&kv_heads=1&head_dim=8&latent=1024&rope=128").page
    assert out(tab, "ratio") == "72 times as large as MHA" and out(tab, "elements") == "1,024 + 128 = 1,152"
    seen, width = tab.evaluate(PATHS), tab.evaluate("document.querySelector('.hd-plot').clientWidth")
    ends = tab.evaluate(
        "[...document.querySelectorAll('.hd-plot rect')].map(r => +r.getAttribute('x') + +r.getAttribute('width'))"
    )
    assert max(ends) <= width
    assert seen["c"][-1] / seen["mha"][-1] == pytest.approx(1_024 / 16, rel=2e-2)
    assert seen["c"][0] / seen["k"] == pytest.approx(1_024 / 16, rel=0.4), "the gap between heads is white"


def test_fewer_layers_than_would_share(visit: Visitor) -> None:
    tab = visit("heads?kv_heads=32&span=4&layers=3").page
    assert out(tab, "kind") == "MHA + CLA 3" and "every 3 layers" in tab.locator(".hd-answer").inner_text()
    tab = visit("heads?kv_heads=32&span=4&layers=1").page
    assert out(tab, "kind") == "MHA" and "layers" not in tab.locator(".hd-answer").inner_text()


def test_no_slider_moves_while_one_is_dragged(visit: Visitor) -> None:
    """On a phone, where the sentence grows by lines; each slider from one end to the other."""
    for lang in ("heads", "zh-heads"):
        tab = visit(f"{lang}?heads=64", width=390).page
        tops = """[...document.querySelectorAll('#heads .kv-control input')].map(
            (input) => Math.round(input.getBoundingClientRect().top + scrollY))"""
        before = tab.evaluate(tops)
        for name in ("heads", "kv_heads", "latent", "rope", "span", "head_dim", "layers"):
            for key in ("Home", "ArrowRight", "End"):
                slider = tab.locator(f'{WIDGET} input[type=range][data-control="{name}"]')
                if slider.is_enabled():
                    slider.press(key)
                    tab.wait_for_timeout(60)
                assert tab.evaluate(tops) == before, (lang, name, key)


def test_the_drawing_is_true_to_scale(visit: Visitor) -> None:
    """Widths of what is kept, over widths of what MHA would keep, are the ratio of the bytes."""
    tab = visit("heads").page
    pressed(tab, "mha")
    full = tab.evaluate(PATHS)
    assert (full["queries"], full["keys"], full["ties"]) == (32, 32, 32)
    for name, keys in (("gqa", 8), ("mqa", 1)):
        pressed(tab, name)
        seen = tab.evaluate(PATHS)
        assert (seen["queries"], seen["keys"], seen["ties"]) == (32, keys, 32)
        assert seen["k"] / full["k"] == pytest.approx(keys / 32, rel=1e-3)
        assert 2 * seen["plain"][0] / seen["mha"][0] == pytest.approx(keys / 32, rel=2e-2)
    pressed(tab, "mla")
    seen = tab.evaluate(PATHS)
    assert seen["queries"] == seen["keys"] == 128
    assert seen["c"][-1] / seen["mha"][-1] == pytest.approx(512 / 32_768, rel=2e-2)
    pressed(tab, "cla")
    assert tab.evaluate(PATHS)["arrows"] == 2, "layers 2 and 4 read layers 1 and 3"


def test_the_address_holds_the_setting_and_wrong_ones_do_no_harm(visit: Visitor) -> None:
    tab = visit("heads?heads=64&kv_heads=16&span=2&layers=80").page
    assert out(tab, "elements") == "2 × 16 × 128 = 4,096"
    assert out(tab, "owners") == "40 of 80"
    tab.locator(f'{WIDGET} [data-control="kv_heads"]').press("Home")
    tab.wait_for_function("new URL(location).searchParams.get('kv_heads') === '1'")
    assert query(tab) == {"heads": "64", "kv_heads": "1", "span": "2", "layers": "80"}
    expect(tab.locator(f'{WIDGET} [data-out="kind"]')).to_have_text("MQA + CLA 2")  # drawn in the next frame
    tab = visit("heads?heads=7&kv_heads=-3&latent=x&span=99&layers=0").page
    assert out(tab, "total") == "131,072 B (128.00 KiB)"


def test_no_slider_asks_the_server_and_each_draws_within_a_frame(visit: Visitor) -> None:
    opened = visit("heads?heads=64")
    tab = opened.page
    tab.wait_for_timeout(1_000)
    before, times = len(opened.asked), []
    for name in ("heads", "latent", "rope", "span", "head_dim", "layers"):
        for key in ("End", "Home", "ArrowRight", "ArrowRight"):
            renders = int(tab.locator(WIDGET).get_attribute("data-renders") or 0)
            tab.locator(f'{WIDGET} [data-control="{name}"]').press(key)
            tab.wait_for_function(f"Number(document.querySelector('{WIDGET}').dataset.renders) > {renders}")
            times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
    assert len(opened.asked) == before, opened.asked[before:]
    draws_within_a_frame(times)


def test_motion_ends_where_it_should(visit: Visitor) -> None:
    tab = visit("heads", reduced_motion=False).page
    pressed(tab, "mqa")
    tab.wait_for_function("document.querySelector('.hd-plot .hd-kv .hd-k').getAttribute('d').match(/M/g).length === 1")


def test_absorption_with_own_numbers(visit: Visitor) -> None:
    """q = (2, 1), W = [1 0 2; -1 3 1]: q' = (1, 3, 5); with c = (1, 2, 0): k = (1, 5), score 7 both ways."""
    tab = visit("heads").page

    def column(name: str) -> list[str]:
        return [tab.locator(f'#heads-absorb [data-out="{name}{j}"]').inner_text() for j in range(3)]

    assert column("key")[0] == "(1, 5)" and column("score")[0] == "7"
    assert column("moved") == ["(1, 3, 5)"] * 3
    assert column("score") == column("score2") == ["7", "5", "−7"]
    tab.fill('[data-cell="q0"]', "-3")
    assert column("moved") == ["(−4, 3, −5)"] * 3
    assert column("score") == column("score2") == ["2", "−20", "13"]
    assert query(tab)["absorb"].startswith("-3,1,")
    tab.fill('[data-cell="q0"]', "2.5")
    assert tab.locator('[data-cell="q0"]').get_attribute("data-wrong") is not None
    assert column("score") == ["2", "−20", "13"]
    tab.check('#heads-absorb [data-control="rotate"]')
    assert len(set(column("moved"))) == 3
    # q = (-3, 1), k = (1, 5), (5, -5), (-4, 1) turned by one, two and three quarters: (-5, 1), (-5, 5), (1, 4)
    assert column("key") == ["(−5, 1)", "(−5, 5)", "(1, 4)"]
    assert column("score") == column("score2") == ["16", "20", "1"]
    tab = visit(tab.url.split("/")[-1]).page
    assert tab.locator('[data-cell="q0"]').input_value() == "-3"
    assert tab.locator('#heads-absorb [data-control="rotate"]').is_checked()


def test_the_lab_measures_what_its_controls_say_and_leaves_the_drawing_alone(visit: Visitor) -> None:
    """8 Query heads: 1, 2, 4 and 8 KV heads and MLA; 256 tokens, 2 x 128 numbers of 2 bytes a head."""
    tab = visit("heads").page
    before = out(tab, "total")
    panel = tab.locator("#lab-heads")
    panel.get_by_label("Query heads").select_option("8")
    panel.get_by_label("Context").select_option("256")
    panel.get_by_role("button", name="Measure", exact=True).click()
    tab.wait_for_function("/Against MQA, MHA reads 8.0 times/.test(document.querySelector('#lab-heads').textContent)")
    names = panel.locator("tbody tr th").all_inner_texts()
    stored = panel.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert names == ["1 (MQA)", "2 (GQA)", "4 (GQA)", "8 (MHA)", "MLA"]
    assert stored == ["131,072", "262,144", "524,288", "1,048,576", "294,912"]
    bars = "document.querySelectorAll('#lab-heads .bars .point').length"
    tab.wait_for_function(f"{bars} === 10")
    assert query(tab) == {"heads.num_heads": "8", "heads.kv_len": "256"}
    assert out(tab, "total") == before
    tab = visit(tab.url.split("/")[-1]).page
    assert tab.locator("#lab-heads").get_by_label("Query heads").input_value() == "8"
    assert tab.locator("#lab-mla-absorption").get_by_label("Heads").input_value() == "16"


def test_a_phone_shows_both_scores_and_where_a_table_goes_on(visit: Visitor) -> None:
    for lang in ("heads", "zh-heads"):
        tab = visit(f"{lang}?rotate=true", width=390).page
        box = tab.locator("#heads-absorb .kv-table-wrap").bounding_box()
        last = tab.locator('#heads-absorb [data-out="score20"]').bounding_box()
        assert box and last and last["x"] + last["width"] <= box["x"] + box["width"] + 1, lang
        assert tab.locator("#heads-absorb thead th").all_inner_texts()[-1] == "q′ · c"
        assert "scroll" in tab.evaluate(
            "getComputedStyle(document.querySelector('.kv-table-wrap')).backgroundAttachment"
        )
        tab.locator('[data-cell="q0"]').focus()
        tab.keyboard.press("Shift+Tab")
        ring = tab.evaluate(
            "[document.activeElement.dataset.control, getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert ring == ["rotate", "solid"]
