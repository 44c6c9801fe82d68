"""The worked example without a browser: what it hands to the browser, its tables, and the numbers in its words."""

import json
import re
from pathlib import Path

import pytest

from explorer.estimators.memory import cache_bytes
from explorer.estimators.transfer import decode_step, duration, move, transfer_ns
from explorer.specs.catalog import devices, model_named
from explorer.text import LANGUAGES
from pages import worked_example, worked_example_tables
from pages._content import ASSETS, sections, strings
from pages._page import Ctx

GIB = 2**30
QWEN = model_named("qwen3-32b")


def ctx(lang):
    return Ctx(lang, worked_example.PAGE, None, (worked_example.PAGE,))


def prose(lang):
    return "\n".join(sections("worked-example", lang).values())


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_the_catalogue_and_exact_in_javascript(lang):
    props = worked_example.widget_props(lang)
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    assert (props["model"]["layers"], props["model"]["kv_heads"], props["model"]["head_dim"]) == (64, 8, 128)
    assert props["model"]["bytes_per_token"] == 262_144 and props["model"]["weight_params"] == 32_762_123_264
    whole = [device[key] for device in props["devices"] for key in ("memory_bytes", "bandwidth_bytes_per_s")]
    whole += [model["weight_params"] for model in props["movers"]]
    assert all(isinstance(value, int) and 0 < value < 2**53 for value in whole)
    for name, (low, high) in worked_example.LIMITS.items():
        assert low <= worked_example.START[name] <= high


def test_a_model_that_five_numbers_cannot_describe_is_not_taken():
    with pytest.raises(AssertionError, match="five numbers"):
        worked_example.shape_of("gemma-3-27b")


@pytest.mark.parametrize("name", worked_example.PRESETS)
def test_presets_are_values_that_the_controls_take(name):
    preset = worked_example.PRESETS[name]
    assert preset.keys() <= worked_example.START.keys()
    for key, value in preset.items():
        if key in worked_example.LIMITS:
            assert worked_example.LIMITS[key][0] <= value <= worked_example.LIMITS[key][1]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_numbers_in_the_words_are_those_of_the_estimators(lang):
    text = prose(lang)
    times = {
        "2.863": transfer_ns(8 * GIB, 3 * 10**12),
        "2.667": transfer_ns(8 * 10**9, 3 * 10**12),
        "15.625": transfer_ns(10**9, 64 * 10**9),
        "93.75": transfer_ns(6 * 10**9, 64 * 10**9),
    }
    for words, ns in times.items():
        assert f"{words} ms" in text and duration(ns).rstrip("0 ms").startswith(words)
    assert cache_bytes(QWEN, 1).total_bytes == 262_144 and "262{,}144" in text and "256\\ \\text{KiB}" in text
    assert cache_bytes(QWEN, 1).total_bytes // 64 == 4 * 1_024 and "4 KiB" in text
    assert cache_bytes(QWEN, 32_768, 8).total_bytes == 64 * GIB
    assert decode_step(QWEN, 1, 1, 1).weight_bytes == 65_524_246_528 and "65.52 GB" in text
    slow = move(3_000, cache_bytes(model_named("llama-2-7b"), 1).total_bytes, 25 * 10**9, 44_025)
    assert slow.load_tokens_per_s == 47_684 and "47,684" in text and "44,025" in text
    assert cache_bytes(model_named("llama-3.1-8b"), 16_384).total_bytes == 2 * GIB and "2 GiB" in text
    assert f"{QWEN.max_positions:,}" in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_embedding_that_a_step_only_looks_up(lang):
    """151,936 rows of 5,120 numbers of 2 bytes: 1.56 GB, and not tied to the output."""
    entry = json.loads((Path(ASSETS) / "catalog" / "models.json").read_text(encoding="utf-8"))["entries"]["qwen3-32b"]
    config = entry["config"]
    assert round(config["vocab_size"] * config["hidden_size"] * 2 / 1e9, 2) == 1.56
    assert config["tie_word_embeddings"] is False and "1.56 GB" in sections("worked-example", lang)["limits"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tables_hold_all_rows_and_every_quoted_number_its_source(lang):
    assert worked_example_tables.checks_table(ctx(lang)).count("<tr>") == 4
    assert worked_example_tables.axes_table(ctx(lang)).count("<tr>") == 6
    table = worked_example_tables.sources_table(ctx(lang), worked_example.MOVERS)
    assert "kv-quoted" in table
    for item in (*map(model_named, worked_example.MOVERS), *devices().values()):
        assert item.title in table and item.source in table and item.verified.get(lang) in table


def test_both_languages_have_the_same_texts():
    assert strings("worked-example", "en").keys() == strings("worked-example", "zh").keys()
    assert sections("worked-example", "en").keys() == sections("worked-example", "zh").keys()
    for key, text in strings("worked-example", "en").items():
        other = strings("worked-example", "zh")[key]
        assert set(re.findall(r"{(\w+)", text)) == set(re.findall(r"{(\w+)", other)), key
        assert text.count("|") == other.count("|"), key


def test_every_branch_of_the_flow_is_written_in_full():
    for branch in worked_example.BRANCHES:
        for what in ("measure", "try", "proof", "not"):
            assert len(strings("worked-example", "en")[f"flow-{branch}-{what}"]) > 20


def test_chinese_punctuation_is_full_width():
    texts = [*strings("worked-example", "zh").values(), *sections("worked-example", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    words = {
        "en": "logical|CUDA graphs|fragmentation|not a forecast|peak is not|adapters|evicted|tenants|synchronising|"
        "Once or every step|chunked prefill|TTFT grows|not a benchmark|trained MHA|Ratios of time do not multiply|"
        "unfilled blocks|without scales|TP and PP",
        "zh": "逻辑|CUDA Graph|碎片|不是对 TPOT 的预测|峰值也不是|adapter|淘汰|租户|准备、同步|"
        "一次，还是每步|chunked prefill|TTFT 是否|不是基准测试|MHA 模型不能|时间的比例不能相乘|"
        "未填满的块|不计 scale|TP 与 PP",
    }
    assert [word for word in words[lang].split("|") if word not in prose(lang)] == []
