"""Heads, without a browser: its tables by hand, what it hands to the browser, and its texts in both languages."""

import json
import re
from fractions import Fraction

import pytest

from explorer.estimators.memory import cache_bytes
from explorer.labs.base import LABS
from explorer.measuring.record import Record
from explorer.specs.catalog import models
from explorer.specs.layers import FullAttention
from explorer.specs.limits import LIMITS
from explorer.text import LANGUAGES
from pages import PAGES, heads, heads_tables
from pages._content import sections, strings
from pages._lab_result import figure
from pages._page import Ctx


def ctx(lang):
    return Ctx(lang, heads.PAGE, None, PAGES)


def cells(table):
    """The rows of an HTML table as lists of text."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows][1:]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_models_table_by_hand(lang):
    """A layer of 8 KV heads of 128 keeps 4 KiB a token in bf16: x 80 layers = 320 KiB, x 126 = 504 KiB."""
    rows = {row[0]: row[1:] for row in cells(heads_tables.models_table(ctx(lang)))}
    assert rows["Llama 2 7B"] == ["2023", "MHA", "32", "32", "1×", "512.00 KiB"]
    assert rows["Llama 2 13B"] == ["2023", "MHA", "40", "40", "1×", "800.00 KiB"]
    assert rows["Llama 2 70B"] == ["2023", "GQA", "64", "8", "8×", "320.00 KiB"]
    assert rows["Mistral 7B"] == ["2023", "GQA", "32", "8", "4×", "128.00 KiB"]
    assert rows["Llama 3.1 8B"] == ["2024", "GQA", "32", "8", "4×", "128.00 KiB"]
    assert rows["Llama 3.1 70B"] == ["2024", "GQA", "64", "8", "8×", "320.00 KiB"]
    assert rows["Llama 3.1 405B"] == ["2024", "GQA", "128", "8", "16×", "504.00 KiB"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_sizes_table_by_hand(lang):
    """126 and 80 layers of 2 x 8 x 128 x 2 = 4,096 B; 61 layers of 576 x 2 = 1,152 B."""
    left, right = "（）" if lang == "zh" else (" (", ")")
    assert [(row[0], row[-1]) for row in cells(heads_tables.sizes_table(ctx(lang)))] == [
        ("Llama 3.1 405B", f"516,096 B{left}504.00 KiB{right}"),
        ("Qwen2.5 72B", f"327,680 B{left}320.00 KiB{right}"),
        ("DeepSeek-V3", f"70,272 B{left}68.63 KiB{right}"),
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_three_baselines_by_hand(lang):
    """128 x 112 = 14,336, 128 x 256 = 32,768 and 128 x 320 = 40,960, each over 576."""
    rows = [row[1:] for row in cells(heads_tables.baselines_table(ctx(lang)))]
    assert rows == [
        ["128 × (56 + 56) = 14,336", "24.9×"],
        ["128 × (128 + 128) = 32,768", "56.9×"],
        ["128 × (192 + 128) = 40,960", "71.1×"],
    ]


def test_orders_table_by_hand():
    """Expanded: T (65,536 + 128); absorbed: 65,536 + 512 T."""
    rows = cells(heads_tables.orders_table(ctx("en")))
    assert rows[0] == ["1", "65,664", "66,048", "0.99×"]
    assert rows[1] == ["128", "8,404,992", "131,072", "64.12×"]
    assert rows[2][1:3] == ["268,959,744", "2,162,688"]


def test_sharing_table_by_hand():
    """128 KiB with 8 KV heads; halved by pairs, quartered by fours."""
    rows = [row[1:] for row in cells(heads_tables.sharing_table(ctx("en")))]
    assert rows == [
        ["512.00 KiB", "256.00 KiB", "128.00 KiB"],
        ["128.00 KiB", "64.00 KiB", "32.00 KiB"],
        ["16.00 KiB", "8.00 KiB", "4.00 KiB"],
    ]
    assert heads_tables.shared_bytes(FullAttention(8, 128, 128), 5, 2) == 3 * 4_096, "a last layer alone keeps its own"


def test_the_catalogue_agrees_with_the_tables():
    known = {spec.title: spec for spec in models().values()}
    shared = [model for model in (*heads_tables.GROUPED, *heads_tables.COMPARED) if model.title in known]
    assert shared
    for model in shared:
        assert cache_bytes(known[model.title], 1).total_bytes == model.bytes_per_token()
        assert known[model.title].num_heads == model.heads


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_quoted_saving_is_followed_rightly(lang):
    equal = Fraction(60 * 576, 95 * 2 * 8 * 128)
    text = sections("heads", lang)["quoted"].replace("\n", " ").replace(" %", "%")
    assert f"{float(1 - equal):.1%}" == "82.2%" and "82.2%" in text
    assert f"{float(1 - equal * Fraction(6, 16)):.1%}" == "93.3%" and "93.3%" in text
    assert Fraction(576, 2 * 128) == Fraction("2.25") and "2.25" in sections("heads", lang)["latent"]
    assert f"{(576 + 512) / (192 + 128):.1f}" == "3.4" and "3.4" in sections("heads", lang)["orders"]
    assert round(128 * (192 + 128) / 576) == 71 and "1/71" in sections("heads", lang)["orders"]
    for condition in ("H800", "FP8", "5.76", "67B"):
        assert condition in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_plain_and_inside_the_estimators_limits(lang):
    props = heads.widget_props(lang)
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    limits = {"latent": "latent_dim", "rope": "latent_dim", "head_dim": "head_dim", "layers": "num_layers"}
    for name, key in limits.items():
        assert LIMITS[key].low <= heads.LIMITS[name][0] < heads.LIMITS[name][1] <= LIMITS[key].high
    for preset in props["presets"].values():
        assert preset["heads"] in props["heads"] and preset["heads"] % preset["kv_heads"] == 0
        assert all(low <= preset[name] <= high for name, (low, high) in props["limits"].items())
    assert props["presets"]["mla"]["latent"] + props["presets"]["mla"]["rope"] == 576


def test_chinese_punctuation_is_full_width():
    texts = [*strings("heads", "zh").values(), *sections("heads", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    limits = sections("heads", lang)["limits"]
    words = {
        "en": ["switch", "speeds", "quality", "bf16", "softmax", "tensor-parallel", "activations"],
        "zh": ["开关", "速度", "质量", "bf16", "softmax", "张量并行", "激活"],
    }
    assert all(word in limits for word in words[lang])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_labs_figure_has_a_bar_for_each_way_with_its_bound_and_its_spread(lang):
    """MLA stands beside the numbers of KV heads: the axis holds names."""
    lab = LABS["heads"]
    rows = [
        dict.fromkeys((column.name for column in lab.columns), 1.0)
        | {"kv_heads": name, "step_ms": ms, "step_p20_ms": ms - 0.5, "step_p80_ms": ms + 0.25, "bound_ms": ms / 4}
        for name, ms in (("1 (MQA)", 2.0), ("8 (MHA)", 6.0), ("MLA", 3.0))
    ]
    drawn = figure(lab, Record("heads", {}, lab.columns, rows), lang)
    step, bound = drawn["data"]
    assert step["type"] == bound["type"] == "bar" and step["x"] == bound["x"] == ["1 (MQA)", "8 (MHA)", "MLA"]
    assert step["y"] == [2.0, 6.0, 3.0] and bound["y"] == [0.5, 1.5, 0.75] and "error_y" not in bound
    assert step["error_y"]["array"] == [0.25] * 3 and step["error_y"]["arrayminus"] == [0.5] * 3
    assert step["error_y"]["color"] == "var(--ink)", "to be seen on a light and on a dark page"
    assert drawn["layout"]["yaxis"]["rangemode"] == "tozero" and drawn["layout"]["showlegend"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_labs_settings_are_those_that_the_text_names(lang):
    lab, text = LABS["heads"](), sections("heads", lang)["measure"]
    assert lab.num_heads == 32 and lab.kv_len == 4_096
    assert str(lab.num_heads) in text and f"{lab.kv_len:,}" in text
