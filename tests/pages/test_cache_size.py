"""Cache size, without a browser: its tables, what it hands to the browser, and its texts in both languages."""

import json
import re

import pytest

from explorer.estimators.assumptions import assumptions_of
from explorer.estimators.ranks import Ranks
from explorer.specs.catalog import devices, models
from explorer.specs.formats import FORMATS, cache_format
from explorer.specs.layers import FullAttention, SlidingWindow
from explorer.specs.limits import LIMITS
from explorer.specs.model import ModelSpec
from explorer.text import LANGUAGES
from pages import cache_size, cache_size_entries, cache_size_tables
from pages._content import sections, strings
from pages._page import Ctx
from pages.cache_size_config import read_pasted


def ctx(lang):
    return Ctx(lang, cache_size.PAGE, None, (cache_size.PAGE,))


def cells(table):
    """The rows of an HTML table as lists of text."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_growth_table_by_hand(lang):
    """512 KiB a token: 512 KiB, 512 MiB, 2 GiB and 64 GiB for 1, 1,024, 4,096 and 131,072 tokens."""
    rows = cells(cache_size_tables.growth_table(ctx(lang)))[1:]
    assert [row[:3] for row in rows] == [
        ["1", "512.00 KiB", "524.29 kB"],
        ["1,024 (1 Ki)", "512.00 MiB", "536.87 MB"],
        ["4,096 (4 Ki)", "2.00 GiB", "2.15 GB"],
        ["131,072 (128 Ki)", "64.00 GiB", "68.72 GB"],
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_heads_table_by_hand(lang):
    """MHA 64 GiB, GQA a quarter, MQA a 32nd; one layer keeps 16 KiB, 4 KiB and 512 B a token."""
    rows = cells(cache_size_tables.heads_table(ctx(lang)))[1:]
    assert rows == [
        ["MHA", "32", "512.00 KiB", "64.00 GiB", "1", "16.00 KiB"],
        ["GQA", "8", "128.00 KiB", "16.00 GiB", "1/4", "4.00 KiB"],
        ["MQA", "1", "16.00 KiB", "2.00 GiB", "1/32", "512 B"],
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_quoted_number_has_its_source_on_the_page(lang):
    table = cache_size_tables.devices_table(ctx(lang))
    assert "kv-quoted" in table
    for item in devices().values():
        assert item.title in table and item.source in table and item.verified.get(lang) in table
    by_name = {entry["name"]: entry for entry in cache_size.widget_props(lang)["models"]}
    assert by_name.keys() == models().keys()
    for name, spec in models().items():
        said = by_name[name]
        assert (said["source"], said["date"], said["verified"]) == (spec.source, spec.date, spec.verified.get(lang))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_the_catalogue(lang):
    props = cache_size.widget_props(lang)
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    by_name = {entry["name"]: entry for entry in props["models"]}
    assert {"llama-2-7b", "llama-3.1-8b", "qwen3-32b", "smollm2-135m"} <= set(by_name)
    assert by_name["smollm2-135m"]["shape"] == {"layers": 30, "kv_heads": 3, "head_dim": 64}
    assert by_name[props["start"]["model"]]["shape"] is not None  # an own shape can always start from it
    assert props["start"]["gpu"] in {device["name"] for device in props["devices"]}
    assert [form["name"] for form in props["formats"]] == list(FORMATS)
    whole = [device["memory_bytes"] for device in props["devices"]]
    whole += [entry["weight_params"] for entry in props["models"] if entry["weight_params"] is not None]
    assert all(isinstance(value, int) and 0 < value < 2**53 for value in whole)  # exact as JavaScript numbers


def test_five_numbers_describe_only_like_layers_of_full_attention():
    wide, narrow, window = FullAttention(8, 128, 128), FullAttention(8, 128, 64), SlidingWindow(8, 128, 128, 512)
    for layers in ((wide, narrow), (narrow, narrow), (window, window), (wide, window)):
        assert cache_size_entries.shape_of(ModelSpec("x", layers, 8, 1_024)) is None
    found = cache_size_entries.shape_of(ModelSpec("x", (wide, wide), 8, 1_024))
    assert found == {"layers": 2, "kv_heads": 8, "head_dim": 128}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_assumptions_on_the_page_are_the_estimators(lang):
    """All that it says of one device in bf16, but for what the controls decide: devices, draft layers, length."""
    props = cache_size.widget_props(lang)
    for entry in props["models"]:
        spec = models()[entry["name"]]
        said = [props["lines"][index] for index in entry["variants"][""]["assumed"]]
        wanted = assumptions_of(spec, 1, cache_format("bf16"), Ranks(), include_mtp=False)
        left = [line.get(lang) for line in wanted if line.get(lang) not in said]
        assert len(said) == len(wanted) - len(left) and len(left) == (2 if spec.mtp_layers else 1), left


def test_controls_stay_inside_the_estimators_limits_and_hold_every_preset():
    keys = {
        "tokens": "tokens",
        "batch": "batch",
        "layers": "num_layers",
        "kv_heads": "num_kv_heads",
        "head_dim": "head_dim",
    }
    shapes = [entry["shape"] for entry in cache_size.widget_props("en")["models"] if entry["shape"]]
    for name, (low, high) in cache_size.CONTROLS.items():
        limit = LIMITS[keys[name]]
        assert limit.low <= low < high <= limit.high
        if name in ("layers", "kv_heads", "head_dim"):
            assert all(low <= shape[name] <= high for shape in shapes)
    assert all(LIMITS["tp"].low <= ranks <= LIMITS["tp"].high for ranks in cache_size.RANKS)


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
            "scales",
            "MLA",
            "sliding window",
            "Tensor parallelism",
            "prefix",
            "trained",
        ],
        "zh": ["激活", "最后一块", "scale", "MLA", "滑动窗口", "张量并行", "前缀", "训练"],
    }
    assert all(word in limits for word in words[lang])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_pasted_config_is_read_like_the_catalogues(lang):
    config = json.dumps(
        {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}
    )
    answer = read_pasted(config, lang)
    assert answer["status"] == "read" and json.loads(json.dumps(answer)) == answer
    assert answer["entry"]["shape"] == {"layers": 32, "kv_heads": 32, "head_dim": 128}
    assert answer["entry"]["weight_params"] is None and answer["entry"]["source"] == ""


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        ["{}"],
        {"model_type": "llama"},
        "",
        "  ",
        "{",
        "[]",
        "null",
        "[" * 3_000,
        '{"a":' * 100_000,
        "x" * 50_000_000,
        '{"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 8}' + " " * 200_000,
        '{"model_type": "llama", "num_hidden_layers": 1e12}',
        '{"model_type": "llama", "num_hidden_layers": NaN}',
        '{"model_type": "llama", "num_hidden_layers": -1, "num_attention_heads": 0}',
        '{"model_type": "/etc/passwd"}',
        '{"model_type": "llama", "num_hidden_layers": "32"}',
        "\x00\x01\x02",
        "../../config.json",
        "https://huggingface.co/meta-llama/Llama-3.1-8B/raw/main/config.json",
    ],
    ids=lambda text: repr(text)[:30],
)
def test_a_config_that_cannot_be_read_gives_one_clear_line(text, lang):
    answer = read_pasted(text, lang)
    assert answer.keys() == {"status", "message"} and answer["status"] == "refused"
    line = answer["message"]
    assert 5 < len(line) < 400 and "\n" not in line and not re.search(r"Traceback|\.py\b|/work|/root", line)
    assert (lang == "zh") == bool(re.search(r"[\u4e00-\u9fff]", line))
