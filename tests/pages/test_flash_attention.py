"""FlashAttention, without a browser: what it hands to the browser, its tables, its numbers and its texts."""

import json
import math
import re

import pytest

from explorer.estimators.attention_scores import Attention
from explorer.labs.base import LABS
from explorer.specs.catalog import device_named
from explorer.specs.limits import LIMITS
from explorer.specs.units import binary
from explorer.text import LANGUAGES
from pages import PAGES, flash_attention, flash_attention_tables
from pages._content import sections, strings
from pages._page import Ctx

NAME = "flash-attention"


def ctx(lang):
    return Ctx(lang, flash_attention.PAGE, None, PAGES)


def text(lang, *names):
    found = sections(NAME, lang)
    return " ".join(found[name] for name in names or found).replace("\n", " ")


def cells(table):
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_plain_and_inside_the_limits(lang):
    softmax, sizes = flash_attention.softmax_props(lang), flash_attention.bytes_props(lang)
    for props in (softmax, sizes):
        assert json.loads(json.dumps(props, allow_nan=False)) == props
    for written in softmax["presets"].values():
        scores = [float(word) for word in written.split(",")]
        assert 2 <= len(scores) <= softmax["most"]
        assert all(score == -math.inf or abs(score) <= softmax["limit"] for score in scores)
    values = [float(word) for word in re.findall(r"-?[\d.]+", softmax["values"])]
    assert values == [x for value in flash_attention.VALUES for x in value]
    assert all(abs(x) <= softmax["valueLimit"] for x in values) and softmax["dim"] == 2
    assert len(values) == 2 * len(softmax["presets"]["late"].split(",")), "a Value for each Key of the first row"
    assert sizes["limits"]["tokens"] <= LIMITS["tokens"].high
    assert sizes["limits"]["heads"] <= LIMITS["num_heads"].high and sizes["limits"]["batch"] <= LIMITS["batch"].high
    start = sizes["start"]
    assert start["head_dim"] in sizes["headDims"] and start["block_q"] in sizes["tiles"]
    assert start["dtype"] in [dtype["name"] for dtype in sizes["dtypes"]]


def test_presets_do_what_they_are_for():
    rows = {name: [float(word) for word in row.split(",")] for name, row in flash_attention.PRESETS.items()}
    block = flash_attention.BLOCK
    late = rows["late"]
    assert late.index(max(late)) >= len(late) - block, "the largest comes in the last block"
    assert rows["rising"] == sorted(rows["rising"])
    assert len(set(rows["equal"])) == 1
    assert max(rows["huge"]) > 88.73
    assert set(rows["masked"][:block]) == {-math.inf}
    assert -math.inf not in rows["masked"][block:]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_numbers_in_the_text_are_the_estimators(lang):
    start = flash_attention.BYTES_START
    one = Attention(start["tokens"], start["tokens"], start["heads"], start["batch"], start["head_dim"], start["dtype"])
    assert (binary(one.head_score_bytes), binary(one.score_bytes)) == ("2.00 GiB", "256.00 GiB")
    words = text(lang, "stored")
    assert "32,768" in words and "128" in words and "2 GiB" in words and "256 GiB" in words
    # The largest finite fp16 is 65,504 and rounds up from 65,520; fp32 ends at 2^128 (1 - 2^-25).
    assert f"{math.log(65_520):.2f}" == "11.09" and "11.09" in text(lang, "online")
    large = Attention(1_024, 1_024, head_dim=256, dtype="fp32").tile_bytes(256)
    assert binary(large) == "514.00 KiB" and large > (228 + 256) * 1024
    assert "514 KiB" in text(lang, "moved") and "228 KiB" in text(lang, "moved")
    assert f"{math.log(2.0**128):.2f}" == "88.72" and "88.72" in text(lang, "online")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_quoted_figures_agree_with_each_other(lang):
    """72 % of an A100's 312, 75 % of an H100's 989 TFLOP/s; 225 over 175."""
    table = flash_attention_tables.quoted_table(ctx(lang))
    a100, h100 = (device_named(name).bf16_flops / 1e12 for name in ("a100-sxm-80gb", "h100-sxm-80gb"))
    assert round(100 * 225 / a100) == 72 and round(100 * 740 / h100) == 75
    assert f"{225 / 175:.2f}" == "1.29" and "1.29" in text(lang, "quoted")
    rows = {row[3]: row for row in cells(table)[1:]}
    assert len(rows) >= 5
    for row in rows.values():
        assert re.search(r"arXiv:(2205\.14135|2307\.08691|2407\.08608)", row[3])
        assert re.search(r"A100|H100", row[2]), "the hardware is named"
    for figure in ("40.3", "4.4", "41.7", "7.3", "225", "72", "175", "740", "1.2", "2.6"):
        assert figure in table


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_row_of_words_is_filled(lang):
    for table, columns in ((flash_attention_tables.phases_table, 3), (flash_attention_tables.others_table, 3)):
        rows = cells(table(ctx(lang)))
        assert len(rows) > 4
        assert all(len(row) == columns and all(row) for row in rows)


def test_both_languages_have_the_same_labels_and_blanks():
    en, zh = strings(NAME, "en"), strings(NAME, "zh")
    assert list(en) == list(zh)
    for key, words in en.items():
        assert sorted(re.findall(r"\{\w+\}", words)) == sorted(re.findall(r"\{\w+\}", zh[key])), key
    assert list(sections(NAME, "en")) == list(sections(NAME, "zh"))


def test_the_lab_is_this_pages():
    assert LABS["flash-attention"].page == flash_attention.PAGE.slug


def test_chinese_punctuation_is_full_width():
    texts = [*strings(NAME, "zh").values(), *sections(NAME, "zh").values()]
    assert not [words for words in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", words)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    words = {
        "en": ["KV cache", "quadratic", "bitwise", "L2", "causal", "GPU's speed", "backward"],
        "zh": ["KV cache", "平方", "逐位", "L2", "因果", "GPU 的速度", "反向"],
    }
    limits = sections(NAME, lang)["limits"]
    assert all(word in limits for word in words[lang])
    says = {
        "en": ("not what every implementation", "no decode step needs it", "whole training run"),
        "zh": ("未必", "decode 的每一步也用不到", "整个训练过程"),
    }
    assert all(word in text(lang) for word in says[lang])
