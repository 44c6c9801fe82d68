"""Roofline in a real browser: its arithmetic equals Python's, its marks lie where they should."""

import math
import random

import pytest
from playwright.sync_api import Page as Tab

from explorer.estimators import roofline
from explorer.specs.catalog import device_named
from tests.browser.watching import Visitor, draws_within_a_frame, query

WIDGET = "#roofline .kv-widget"
JS = """(cases) => cases.map((s) => {
  const m = KV.roofline;
  return [m.gemm(s.rows, s.width, s.width, s.stored), m.grouped(s.heads, s.kv, s.dim, s.len, s.batch, s.stored),
    m.latent(s.heads, s.c, s.r, s.len, s.batch, s.stored)].map((w) => [String(w.flops), String(w.bytes)]);
})"""
GEOMETRY = """() => {
  const plot = document.querySelector('.rf-plot'), at = (node, name) => Number(node.getAttribute(name));
  const dots = [...plot.querySelectorAll('[data-point]')].map((g) => [g.dataset.point, g.querySelector('.rf-dot')]);
  return {
    roof: plot.querySelector('.rf-roof').getAttribute('d').match(/[\\d.]+/g).map(Number),
    points: Object.fromEntries(dots.map(([name, dot]) => [name, [at(dot, 'cx'), at(dot, 'cy')]])),
  };
}"""


def cells(tab: Tab, table: str) -> list[list[str]]:
    """The body of one of the widget's tables."""
    rows = tab.locator(f"{WIDGET} [data-table={table}] tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def number(text: str) -> float:
    return float(text.split()[0].replace(",", ""))


def choose(tab: Tab, name: str, value: str) -> None:
    """Set a menu and wait until the widget has drawn again."""
    before = int(tab.locator(WIDGET).get_attribute("data-renders") or 0)
    tab.locator(f'{WIDGET} [data-control="{name}"]').select_option(value)
    tab.wait_for_function(f"Number(document.querySelector('{WIDGET}').dataset.renders) > {before}")


def test_javascript_equals_python_over_random_settings(visit: Visitor) -> None:
    draw = random.Random(295)
    cases = []
    for _ in range(300):
        kv = 2 ** draw.randint(0, 7)
        sizes = {"rows": 2**30, "width": 32_768, "dim": 512, "len": 2**20, "batch": 1_024, "c": 4_096}
        case = {name: int(2 ** draw.uniform(0, math.log2(high))) for name, high in sizes.items()}
        more = {"heads": kv * draw.randint(1, 16), "kv": kv, "r": draw.randint(0, 256), "stored": draw.choice([1, 2])}
        cases.append(case | more)
    got = visit("roofline").page.evaluate(JS, cases)
    for s, found in zip(cases, got, strict=True):
        wanted = [
            roofline.gemm(s["rows"], s["width"], s["width"], s["stored"]),
            roofline.grouped_attention(s["heads"], s["kv"], s["dim"], s["len"], s["batch"], s["stored"]),
            roofline.latent_attention(s["heads"], s["c"], s["r"], s["len"], s["batch"], s["stored"]),
        ]
        assert found == [[str(work.flops), str(work.num_bytes)] for work in wanted], s
    assert max(int(flops) for row in got for flops, _ in row) > 2**54, "the draw reaches where floats fail"


def test_what_the_page_opens_with(visit: Visitor) -> None:
    """Llama 3 70B's shape, 16 requests of 8,192 tokens, on an H100."""
    tab = visit("roofline").page
    h100 = device_named("h100-sxm-80gb")
    works = [
        roofline.gemm(16 * 8_192, 8_192, 8_192),
        roofline.gemm(16, 8_192, 8_192),
        roofline.grouped_attention(64, 64, 128, 8_192, 16),
        roofline.grouped_attention(64, 8, 128, 8_192, 16),
        roofline.latent_attention(64, 512, 64, 8_192, 16),
    ]
    rows = cells(tab, "work")
    assert [row[4] for row in rows] == ["arithmetic", "memory", "memory", "memory", "memory"]
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
    for row, work in zip(rows, works, strict=True):
        assert number(row[3]) == pytest.approx(float(work.intensity), rel=6e-3)
        bound = work.bound_s(h100.bf16_flops or 0, h100.bandwidth_bytes_per_s)
        assert number(row[5]) * units[row[5].split()[1]] == pytest.approx(bound, rel=6e-3)
    assert "295 FLOP/byte" in tab.locator(".rf-answer").inner_text()
    assert "does 7.99, 37 times less" in tab.locator(".rf-answer").inner_text()


def test_context_and_batch_leave_attention_alone_and_the_batch_moves_the_weights(visit: Visitor) -> None:
    tab = visit("roofline?tokens=16384").page
    prefill, project, *attention = cells(tab, "same")
    for row in attention[:2]:
        short, long, one, many = map(number, row[1:])
        assert short == pytest.approx(long, rel=0.01) and one == many
    assert number(project[1]) == number(project[2]) and number(project[4]) > 50 * number(project[3])
    assert number(prefill[2]) > number(prefill[1])


def test_marks_stand_on_the_roof_at_their_intensity(visit: Visitor) -> None:
    tab = visit("roofline?heads=128&kv_heads=16").page
    for device in ("h100-sxm-80gb", "a100-sxm-80gb", "l4-24gb"):
        if tab.locator(f'{WIDGET} [data-control="device"]').input_value() != device:
            choose(tab, "device", device)
        seen = tab.evaluate(GEOMETRY)
        (x0, y0, rx, ry, x1, y1), rows = seen["roof"], cells(tab, "work")
        assert y1 == pytest.approx(ry)
        for row in rows:
            x, y = seen["points"][row[0][0]]
            wanted = ry if x >= rx else y0 + (x - x0) * (ry - y0) / (rx - x0)
            assert y == pytest.approx(wanted, abs=0.6)
            assert (x >= rx) is (row[4] == "arithmetic")
            share = math.log10(number(row[3]) / 0.4) / math.log10(40_000 / 0.4)
            assert x == pytest.approx(x0 + (x1 - x0) * share, abs=2)


def test_which_devices_mla_crosses(visit: Visitor) -> None:
    """242 FLOP/byte: beyond the ridge of A100, RTX 4090 and H200, below that of H100 and L4."""
    tab = visit("roofline?heads=128&tokens=131072").page
    wanted = {
        "a100-sxm-80gb": "arithmetic",
        "rtx-4090-24gb": "arithmetic",
        "h200-141gb": "arithmetic",
        "l4-24gb": "memory",
    }
    assert cells(tab, "work")[4][4] == "memory"
    for device, pace in wanted.items():
        choose(tab, "device", device)
        assert cells(tab, "work")[4][4] == pace, device


def test_kv_heads_never_exceed_query_heads_and_the_address_keeps_both(visit: Visitor) -> None:
    tab = visit("roofline").page
    choose(tab, "heads", "4")
    assert query(tab) == {"heads": "4", "kv_heads": "4"}
    choose(tab, "kv_heads", "32")
    assert query(tab) == {"heads": "32", "kv_heads": "32"}
    tab = visit("roofline?heads=3&kv_heads=x&batch=0&tokens=99999999&device=none").page
    assert "295" in tab.locator(".rf-answer").inner_text()


def test_sliders_draw_at_once_and_ask_nobody(visit: Visitor) -> None:
    opened = visit("roofline")
    tab = opened.page
    tab.wait_for_timeout(1_000)
    before, times = len(opened.asked), []
    for name in ("batch", "tokens", "width"):
        for key in ("End", "Home", "ArrowRight", "ArrowRight"):
            renders = int(tab.locator(WIDGET).get_attribute("data-renders") or 0)
            tab.locator(f'{WIDGET} [data-control="{name}"]').press(key)
            tab.wait_for_function(f"Number(document.querySelector('{WIDGET}').dataset.renders) > {renders}")
            times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
    assert len(opened.asked) == before, opened.asked[before:]
    draws_within_a_frame(times)


def test_the_machines_own_ridge_is_measured_on_the_page(visit: Visitor) -> None:
    tab = visit("roofline?size=256&kv_len=1024&width=1024&rounds=3").page
    panel = tab.locator("#lab-roofline-device")
    panel.get_by_role("button", name="Measure", exact=True).click()
    tab.wait_for_function("document.querySelectorAll('#lab-roofline-device tbody tr').length === 13", timeout=60_000)
    tab.wait_for_function("/ridge in bf16 lies at/.test(document.querySelector('#lab-roofline-device').textContent)")
