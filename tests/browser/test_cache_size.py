"""Cache size in a real browser: what it computes equals Python, what it draws lies where it should."""

import random
import statistics

import pytest

from explorer.estimators.memory import MAX_TOKENS, cache_bytes, crossing_tokens, largest_tokens_that_fit
from explorer.specs import units
from explorer.specs.catalog import device_named, model_named
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from tests.browser.cache_size_widget import WIDGET, box, control, drawn, out
from tests.browser.conftest import Visitor

DTYPES = {1: "fp8", 2: "bf16", 4: "fp32"}
JS = """(cases) => cases.map(({settings, weights, room, params, bits}) => {
  const m = KV.cacheSize, big = (n) => (n === null ? null : n.toString()), LIMIT = 2 ** 30;
  const total = m.total(settings);
  return [big(m.perToken(settings)), big(total), big(m.longest(settings, BigInt(room), LIMIT)),
    big(m.crossing(settings, BigInt(weights), LIMIT)), big(m.weightBytes(params, bits)),
    m.binary(total), m.decimal(total), m.tokens(settings.tokens)];
})"""

PLOT = """() => {
  const find = (selector) => document.querySelector('.cs-plot ' + selector);
  const height = (selector) => find(selector) && Number(find(selector).getAttribute('y1'));
  const middle = (selector) => {
    if (!find(selector)) return null;
    const box = find(selector).getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  return {
    weights: height('.is-weights'), room: height('.is-room'),
    crossing: middle('.cs-crossing'), fits: middle('.cs-fits'), here: middle('.cs-here'),
    curve: ['x1', 'y1', 'x2', 'y2'].map((name) => Number(find('.cs-curve').getAttribute(name))),
  };
}"""


def python(case: dict) -> list[str | None]:
    """What `JS` gives, by the estimator."""
    s = case["settings"]
    layer = FullAttention(s["kv_heads"], s["head_dim"], s["head_dim"])
    spec = ModelSpec("x", (layer,) * s["layers"], 1, 1, weight_params=case["params"])
    dtype = DTYPES[s["element_bytes"]]
    total = cache_bytes(spec, s["tokens"], s["batch"], dtype).total_bytes
    crossing = crossing_tokens(spec, int(case["weights"]), s["batch"], dtype)
    room = int(case["room"])
    fits = largest_tokens_that_fit(spec, max(room, 0), max(-room, 0), s["batch"], dtype)
    return [
        str(cache_bytes(spec, 1, 1, dtype).total_bytes),
        str(total),
        str(fits),
        None if crossing is None else str(crossing),
        str(spec.weight_bytes(case["bits"])),
        units.binary(total),
        units.decimal(total),
        units.tokens(s["tokens"]),
    ]


def test_javascript_equals_python_over_random_settings(visit: Visitor) -> None:
    """400 draws, from one byte to 2**80; then the corners."""
    draw = random.Random(131_072)

    def some(high: int) -> int:
        return min(high, int(2 ** draw.uniform(0, high.bit_length())))

    def case(**fixed: int) -> dict:
        settings = {
            "layers": some(1_024),
            "kv_heads": some(1_024),
            "head_dim": some(4_096),
            "tokens": some(2**30),
            "batch": some(65_536),
            "element_bytes": draw.choice([1, 2, 4]),
        }
        return {
            "settings": settings | fixed,
            "weights": str(some(2**52)),
            "room": str(some(2**52) - 2**30),
            "params": some(2**52),
            "bits": draw.choice([4, 8, 16]),
        }

    cases = [case() for _ in range(400)]
    cases += [case(tokens=2**n) for n in (0, 9, 10, 11, 20, 30)]
    cases += [
        case(layers=1, kv_heads=1, head_dim=1, tokens=n, batch=1, element_bytes=1) for n in (511, 512, 524_285, 524_287)
    ]
    got = visit("cache-size").page.evaluate(JS, cases)
    wanted = [python(case) for case in cases]
    wrong = [(case, js, py) for case, js, py in zip(cases, got, wanted, strict=True) if js != py]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, e.g. {wrong[0]}"
    assert max(int(row[1]) for row in wanted if row[1]) > 2**60  # the draw does reach where floats fail
    assert {None, str(MAX_TOKENS), "0"} <= {value for row in wanted for value in (row[2], row[3])}


def test_mha_gqa_mqa_through_the_controls(visit: Visitor) -> None:
    """Llama 2 7B's shape at 131,072 tokens: 64 GiB with its 32 KV heads, 16 with 8, 2 with one."""
    tab = visit("cache-size?tokens=131072&model=llama-2-7b").page
    assert (out(tab, "per-token"), out(tab, "total")) == ("512.00 KiB = 524,288 B", "64.00 GiB (68.72 GB)")
    drawn(tab, lambda: box(tab, "kv_heads").fill("8"))
    assert (out(tab, "per-token"), out(tab, "total")) == ("128.00 KiB = 131,072 B", "16.00 GiB (17.18 GB)")
    drawn(tab, lambda: box(tab, "kv_heads").fill("1"))
    assert (out(tab, "per-token"), out(tab, "total")) == ("16.00 KiB = 16,384 B", "2.00 GiB (2.15 GB)")
    assert out(tab, "read") == "2.00 GiB (2.15 GB)"
    assert tab.locator(".cs-result").inner_text() == "2,147,483,648 B"


def test_every_preset_on_the_page_equals_the_estimator(visit: Visitor) -> None:
    tab = visit("cache-size").page
    device = device_named("h100-sxm-80gb")
    for name in control(tab, "model").locator("option").evaluate_all("nodes => nodes.map(n => n.value)"):
        control(tab, "model").select_option(name)
        spec = model_named(name)
        weights = spec.weight_bytes() or 0
        crossing = units.count(crossing_tokens(spec, weights) or 0)
        fits = largest_tokens_that_fit(spec, device.memory_bytes, weights)
        tab.wait_for_function(f"document.querySelector('[data-out=crossing]').textContent === '{crossing} tokens'")
        assert out(tab, "weights") == f"{units.binary(weights)} ({units.decimal(weights)})"
        assert out(tab, "total") == _both(cache_bytes(spec, 32_768).total_bytes)
        wanted = (
            f"{units.count(fits)} tokens" if weights <= device.memory_bytes else "none: the weights alone do not fit"
        )
        assert out(tab, "fits") == wanted
        assert f"outgrows the weights at {crossing} tokens" in tab.locator(".cs-answer").inner_text()


def _both(num_bytes: int) -> str:
    return f"{units.binary(num_bytes)} ({units.decimal(num_bytes)})"


def test_marks_lie_where_the_lines_meet(visit: Visitor) -> None:
    """The diamond sits on the weights' line, the square on the line of the memory that they leave, all on the curve."""
    tab = visit("cache-size?tokens=16384&batch=2").page
    for model in ("llama-2-7b", "qwen3-32b", "smollm2-135m"):
        drawn(tab, lambda model=model: control(tab, "model").select_option(model))
        for scale in ("linear", "log"):
            drawn(tab, lambda scale=scale: control(tab, "scale").select_option(scale))
            _check_marks(tab.evaluate(PLOT), may_lack_fits=scale == "linear")


def _check_marks(seen: dict, may_lack_fits: bool) -> None:
    x1, y1, x2, y2 = seen["curve"]
    for name in ("crossing", "here", "fits"):
        if seen[name] is None:
            assert name == "fits" and may_lack_fits  # far to the right of what linear axes show
            continue
        x, y = seen[name]
        assert y == pytest.approx(y1 + (x - x1) * (y2 - y1) / (x2 - x1), abs=1.0)
    assert seen["crossing"][1] == pytest.approx(seen["weights"], abs=1.0)
    if seen["fits"] is not None:
        assert seen["fits"][1] == pytest.approx(seen["room"], abs=1.0)


def test_every_control_draws_at_once_and_asks_nobody(visit: Visitor) -> None:
    opened = visit("cache-size?tokens=4096")
    tab = opened.page
    tab.wait_for_timeout(1_000)
    before = len(opened.urls)
    times = []
    for name in ("tokens", "batch", "layers", "kv_heads", "head_dim"):
        results = set()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home", *["ArrowRight"] * 6):
            drawn(tab, lambda name=name, key=key: control(tab, name).press(key))
            product = 4  # K and V, two bytes each
            for factor in ("layers", "kv_heads", "head_dim", "tokens", "batch"):
                product *= int(box(tab, factor).input_value())
            assert tab.locator(".cs-result").inner_text() == f"{product:,} B"
            results.add(product)
            times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
        assert len(results) >= 5
    for name in ("model", "gpu", "dtype", "weights", "scale"):
        for value in control(tab, name).locator("option").evaluate_all("nodes => nodes.map(n => n.value)")[::-1]:
            shown = tab.locator(f"{WIDGET}").inner_text() + tab.locator(".cs-plot").inner_html()
            if control(tab, name).input_value() != value:
                drawn(tab, lambda name=name, value=value: control(tab, name).select_option(value))
                assert (
                    tab.locator(f"{WIDGET}").inner_text() + tab.locator(".cs-plot").inner_html() != shown
                    or name == "dtype"
                )
                times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
    assert len(opened.urls) == before, opened.urls[before:]
    assert statistics.median(times) < 16.7, times
