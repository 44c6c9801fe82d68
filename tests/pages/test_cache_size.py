"""Cache size, without a browser: its tables, what it hands to the browser, and its texts in both languages."""

import json
import re

import pytest

from explorer.specs.catalog import devices, models
from explorer.specs.layers import FullAttention
from explorer.specs.limits import LIMITS
from explorer.specs.model import ModelSpec
from explorer.text import LANGUAGES
from pages import cache_size
from pages._content import sections, strings
from pages._page import Ctx


def ctx(lang):
    return Ctx(lang, cache_size.PAGE, None, (cache_size.PAGE,))


def cells(table):
    """The rows of an HTML table as lists of text."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_growth_table_by_hand(lang):
    """512 KiB a token: 512 KiB, 512 MiB, 2 GiB and 64 GiB for 1, 1,024, 4,096 and 131,072 tokens."""
    rows = cells(cache_size.growth_table(ctx(lang)))[1:]
    assert [row[:3] for row in rows] == [
        ["1", "512.00 KiB", "524.29 kB"],
        ["1,024 (1 Ki)", "512.00 MiB", "536.87 MB"],
        ["4,096 (4 Ki)", "2.00 GiB", "2.15 GB"],
        ["131,072 (128 Ki)", "64.00 GiB", "68.72 GB"],
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_heads_table_by_hand(lang):
    """MHA 64 GiB, GQA a quarter, MQA a 32nd; one layer keeps 16 KiB, 4 KiB and 512 B a token."""
    rows = cells(cache_size.heads_table(ctx(lang)))[1:]
    assert rows == [
        ["MHA", "32", "512.00 KiB", "64.00 GiB", "1", "16.00 KiB"],
        ["GQA", "8", "128.00 KiB", "16.00 GiB", "1/4", "4.00 KiB"],
        ["MQA", "1", "16.00 KiB", "2.00 GiB", "1/32", "512 B"],
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_quoted_number_has_its_source_on_the_page(lang):
    table = cache_size.sources_tables(ctx(lang))
    assert "kv-quoted" in table
    for item in (*models().values(), *devices().values()):
        assert item.title in table and item.source in table and item.verified.get(lang) in table


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_the_catalogue(lang):
    props = cache_size.widget_props(lang)
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    by_name = {entry["name"]: entry for entry in props["models"]}
    assert {"llama-2-7b", "llama-3.1-8b", "qwen3-32b", "smollm2-135m"} <= set(by_name)
    assert by_name["smollm2-135m"]["layers"] == 30 and by_name["smollm2-135m"]["kv_heads"] == 3
    assert props["start"]["model"] in by_name
    assert props["start"]["gpu"] in {device["name"] for device in props["devices"]}
    whole = [entry[key] for entry in props["models"] for key in ("layers", "kv_heads", "head_dim", "weight_params")]
    whole += [device["memory_bytes"] for device in props["devices"]]
    assert all(isinstance(value, int) and 0 < value < 2**53 for value in whole)  # exact as JavaScript numbers


def test_models_with_unlike_layers_are_not_offered():
    """Five numbers cannot describe them."""
    wide, narrow = FullAttention(8, 128, 128), FullAttention(8, 128, 64)
    for layers in ((wide, narrow), (narrow, narrow)):
        assert cache_size._model_entry(ModelSpec("x", layers, 8, 1_024, weight_params=1)) is None
    assert cache_size._model_entry(ModelSpec("x", (wide, wide), 8, 1_024)) is None  # weights not known
    assert cache_size._model_entry(ModelSpec("x", (wide, wide), 8, 1_024, weight_params=1)) is not None


def test_controls_stay_inside_the_estimators_limits_and_hold_every_preset():
    keys = {
        "tokens": "tokens",
        "batch": "batch",
        "layers": "num_layers",
        "kv_heads": "num_kv_heads",
        "head_dim": "head_dim",
    }
    for name, (low, high) in cache_size.CONTROLS.items():
        limit = LIMITS[keys[name]]
        assert limit.low <= low < high <= limit.high
        if name in ("layers", "kv_heads", "head_dim"):
            assert all(low <= entry[name] <= high for entry in cache_size.widget_props("en")["models"])


def test_both_languages_have_the_same_texts():
    assert strings("cache-size", "en").keys() == strings("cache-size", "zh").keys()
    assert sections("cache-size", "en").keys() == sections("cache-size", "zh").keys()
    for key, text in strings("cache-size", "en").items():
        assert set(re.findall(r"{(\w+)}", text)) == set(re.findall(r"{(\w+)}", strings("cache-size", "zh")[key])), key


def test_chinese_punctuation_is_full_width():
    texts = [*strings("cache-size", "zh").values(), *sections("cache-size", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    limits = sections("cache-size", lang)["limits"]
    words = {
        "en": [
            "Activations",
            "last block",
            "Scales",
            "MLA",
            "sliding windows",
            "tensor parallelism",
            "prefix",
            "trained",
        ],
        "zh": ["激活", "最后一块", "scale", "MLA", "滑动窗口", "张量并行", "前缀", "训练"],
    }
    assert all(word in limits for word in words[lang])
