"""Cache size in a real browser: what it computes equals Python, what it draws lies where it should."""

import random
from collections.abc import Iterator
from itertools import chain, combinations, pairwise
from typing import Any

import pytest

from explorer.estimators.memory import MAX_TOKENS, cache_bytes, crossing_tokens, largest_tokens_that_fit
from explorer.specs import units
from explorer.specs.catalog import device_named, model_named, models
from explorer.specs.formats import FORMATS
from explorer.specs.from_config import from_config
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from pages.cache_size_entries import entry_of
from tests.browser.cache_size_cases import JS, python, slope_seen
from tests.browser.cache_size_widget import WIDGET, box, choose, control, drawn, mode, out
from tests.browser.conftest import Visitor
from tests.browser.watching import draws_within_a_frame
from tests.explorer.specs.family_configs import CONFIGS

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
    curve: find('.cs-curve').getAttribute('points').split(' ').map((pair) => pair.split(',').map(Number)),
  };
}"""
RANDOM = random.Random(131_072)


def some(high: int) -> int:
    return min(high, int(2 ** RANDOM.uniform(0, high.bit_length())))


def settings(**fixed: Any) -> dict[str, Any]:
    return {
        "tokens": some(2**30),
        "batch": some(65_536),
        "dtype": RANDOM.choice(list(FORMATS)),
        "weights": RANDOM.choice(["16", "8", "4"]),
        "tp": str(RANDOM.choice([1, 1, 2, 4, 8, 16, 64])),
        "layers": some(1_024),
        "kv_heads": some(1_024),
        "head_dim": some(4_096),
    } | fixed


def compared(visit: Visitor, cases: list[dict[str, Any]], specs: list[ModelSpec]) -> list[Any]:
    """The browser's answers, which must be the estimators'."""
    got = visit("cache-size").page.evaluate(JS, cases)
    wanted = [python(spec, case, int(case["values"]["weights"])) for spec, case in zip(specs, cases, strict=True)]
    for case, spec, js, py in zip(cases, specs, got, wanted, strict=True):
        shown = {key: value for key, value in case.items() if key != "entry"} | {"model": spec.name}
        if py == "refused":
            assert js == "refused", shown
            continue
        assert js != "refused", shown
        seen = js.pop("slope_now")
        differing = {key: (js[key], py[key]) for key in py if js[key] != py[key]}
        assert not differing, (shown, differing)
        by_sizes = slope_seen(spec, case)
        assert by_sizes is None or seen == by_sizes, shown
    return [answer for answer in wanted if answer != "refused"]


def test_five_numbers_equal_python_over_random_settings(visit: Visitor) -> None:
    """400 draws of an own shape, from one byte to 2**80; then the corners."""
    cases, specs = [], []
    corners = [{"tokens": 2**n} for n in (0, 9, 10, 11, 20, 30)]
    one = {"layers": 1, "kv_heads": 1, "head_dim": 1, "batch": 1, "dtype": "int8", "tp": "1"}
    corners += [one | {"tokens": n} for n in (511, 512, 524_285, 524_287)]
    for fixed in [*[{"tp": "1"}] * 400, *corners]:
        values, params = settings(**fixed), some(2**52)
        layer = FullAttention(values["kv_heads"], values["head_dim"], values["head_dim"])
        specs.append(ModelSpec("own", (layer,) * values["layers"], 1, 1, weight_params=params))
        entry = {"name": "own", "title": "own", "weight_params": params}
        cases.append(
            {"entry": entry, "mode": "own", "choice": "", "mtp": False, "values": values, "memory": some(2**52)}
        )
    answers = compared(visit, cases, specs)
    assert max(int(answer["total"]) for answer in answers) > 2**60  # the draw does reach where floats fail
    ends = {value for answer in answers for value in (answer["crossing"], answer["fits"])}
    assert {None, str(MAX_TOKENS), "0"} <= ends


def everything() -> Iterator[tuple[str, Any]]:
    """Every model of the catalogue and a published layout of each family: its name and what reads it for a choice."""
    for name in models():
        yield name, lambda switches, name=name: model_named(name, switches)
    for name, config in CONFIGS.items():
        yield name, lambda switches, name=name, config=config: from_config(config, name, switches)


def test_every_model_equals_python_over_random_settings(visit: Visitor) -> None:
    """Every model and family, every choice of its switches, at least 8 settings each and 400 in all."""
    cases, specs = [], []
    for name, read in everything():
        entry = entry_of(read, "en") | {"weight_params": some(2**42)}
        switches = sorted(switch["name"] for switch in entry["switches"])
        choices = list(chain.from_iterable(combinations(switches, n) for n in range(len(switches) + 1)))
        for number in range(max(8, 4 * len(choices))):
            choice = choices[number % len(choices)]
            spec = read(choice)
            values = settings(tokens=RANDOM.choice([some(2**12), some(2**30)]))
            specs.append(ModelSpec(**(vars(spec) | {"weight_params": entry["weight_params"]})))
            cases.append(
                {
                    "entry": entry,
                    "mode": "catalogue",
                    "choice": ",".join(choice),
                    "mtp": bool(spec.mtp_layers) and number % 2 == 1,
                    "values": values,
                    "memory": some(2**44),
                }
            )
        assert sum(spec.name == name for spec in specs) >= 8
    answers = compared(visit, cases, specs)
    assert len(answers) >= 400, len(answers)
    kinds = {row[0] for answer in answers for row in answer["rows"]}
    assert {"full_attention", "sliding_window", "latent", "latent_indexed", "compressed", "recurrent_state"} <= kinds
    assert {"shared", "chunked_attention"} <= kinds
    assert max(int(answer["total"]) for answer in answers) > 2**53


def test_mha_gqa_mqa_through_the_controls(visit: Visitor) -> None:
    """Llama 2 7B's shape at 131,072 tokens: 64 GiB with its 32 KV heads, 16 with 8, 2 with one."""
    tab = visit("cache-size?tokens=131072&model=llama-2-7b").page
    assert (out(tab, "per-token"), out(tab, "total")) == ("512.00 KiB = 524,288 B", "64.00 GiB (68.72 GB)")
    mode(tab, "own")
    assert (out(tab, "per-token"), out(tab, "total")) == ("512.00 KiB = 524,288 B", "64.00 GiB (68.72 GB)")
    drawn(tab, lambda: box(tab, "kv_heads").fill("8"))
    assert (out(tab, "per-token"), out(tab, "total")) == ("128.00 KiB = 131,072 B", "16.00 GiB (17.18 GB)")
    drawn(tab, lambda: box(tab, "kv_heads").fill("1"))
    assert (out(tab, "per-token"), out(tab, "total")) == ("16.00 KiB = 16,384 B", "2.00 GiB (2.15 GB)")
    assert out(tab, "read") == "2.00 GiB (2.15 GB)"
    assert tab.locator(".cs-result:visible").inner_text() == "2,147,483,648 B"


def test_every_model_on_the_page_equals_the_estimator(visit: Visitor) -> None:
    tab = visit("cache-size").page
    device = device_named("h100-sxm-80gb")
    for name, spec in models().items():
        choose(tab, name)
        found, weights = cache_bytes(spec, 32_768), spec.weight_bytes()
        assert out(tab, "total") == _both(found.total_bytes)
        assert out(tab, "read") == _both(found.read_bytes)
        assert tab.locator(".cs-result:visible").inner_text() == f"{found.total_bytes:,} B"
        assert tab.locator(".cs-ledger tbody tr").count() == min(len(found.ledger), 40)
        assert tab.locator('.cs-ledger tfoot [data-column="now"]').inner_text() == units.binary(found.total_bytes)
        if weights is None:
            assert out(tab, "crossing") == "weights not known"
            continue
        crossing = crossing_tokens(spec, weights)
        fits = largest_tokens_that_fit(spec, device.memory_bytes, min(weights, device.memory_bytes))
        assert out(tab, "weights") == _both(weights)
        assert out(tab, "crossing") == (f"{crossing:,} tokens" if crossing else "not within a billion tokens")
        if weights > device.memory_bytes:
            assert out(tab, "fits") == "none: the weights alone do not fit"
        else:
            assert out(tab, "fits").startswith(f"{fits:,} tokens")
        if crossing:
            assert f"outgrows the weights at {crossing:,} tokens" in tab.locator(".cs-answer").inner_text()


def _both(num_bytes: int) -> str:
    return f"{units.binary(num_bytes)} ({units.decimal(num_bytes)})"


def test_marks_lie_where_the_lines_meet(visit: Visitor) -> None:
    """The diamond sits on the weights' line, the square on the line of the memory that they leave, all on the curve."""
    tab = visit("cache-size?tokens=16384&batch=2").page
    for model in ("llama-2-7b", "qwen3-32b", "smollm2-135m"):
        choose(tab, model)
        for scale in ("linear", "log"):
            drawn(tab, lambda scale=scale: control(tab, "scale").select_option(scale))
            _check_marks(tab.evaluate(PLOT), may_lack_fits=scale == "linear")


def _check_marks(seen: dict[str, Any], may_lack_fits: bool) -> None:
    for name in ("crossing", "here", "fits"):
        if seen[name] is None:
            assert name == "fits" and may_lack_fits  # far to the right of what linear axes show
            continue
        assert seen[name][1] == pytest.approx(_on_curve(seen["curve"], seen[name][0]), abs=1.0)
    assert seen["crossing"][1] == pytest.approx(seen["weights"], abs=1.0)
    if seen["fits"] is not None:
        assert seen["fits"][1] == pytest.approx(seen["room"], abs=1.0)


def _on_curve(points: list[list[float]], x: float) -> float:
    """The curve's height at `x`, between the two corners beside it."""
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 <= x <= x2:
            return y1 + (x - x1) * (y2 - y1) / (x2 - x1) if x2 > x1 else y1
    raise AssertionError(f"{x} is not on the curve")


def test_every_control_draws_at_once_and_asks_nobody(visit: Visitor) -> None:
    opened = visit("cache-size?tokens=4096&from=own")
    tab = opened.page
    tab.wait_for_timeout(1_000)
    before = len(opened.asked)
    times = []
    for name in ("tokens", "batch", "layers", "kv_heads", "head_dim"):
        results = set()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home", *["ArrowRight"] * 6):
            drawn(tab, lambda name=name, key=key: control(tab, name).press(key))
            product = 4  # K and V, two bytes each
            for factor in ("layers", "kv_heads", "head_dim", "tokens", "batch"):
                product *= int(box(tab, factor).input_value())
            assert tab.locator(".cs-result:visible").inner_text() == f"{product:,} B"
            results.add(product)
            times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
        assert len(results) >= 5
    for name in ("gpu", "dtype", "weights", "tp", "scale"):
        usable = "nodes => nodes.filter(n => !n.disabled).map(n => n.value)"
        for value in control(tab, name).locator("option").evaluate_all(usable)[::-1]:
            shown = tab.locator(f"{WIDGET}").inner_text() + tab.locator(".cs-plot").inner_html()
            if control(tab, name).input_value() != value:
                drawn(tab, lambda name=name, value=value: control(tab, name).select_option(value))
                assert (
                    tab.locator(f"{WIDGET}").inner_text() + tab.locator(".cs-plot").inner_html() != shown
                    or name == "dtype"
                )
                times.append(float(tab.locator(WIDGET).get_attribute("data-draw-ms") or "nan"))
    assert len(opened.asked) == before, opened.asked[before:]
    draws_within_a_frame(times)
