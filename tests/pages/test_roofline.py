"""Roofline, without a browser: its table of ridges, what it hands to the browser, and its texts in both languages."""

import json
import re

import pytest

from explorer.estimators import roofline as estimator
from explorer.labs.base import LABS
from explorer.specs.catalog import device_named, devices
from explorer.text import LANGUAGES
from pages import PAGES, roofline
from pages._content import sections, strings
from pages._page import Ctx


def ctx(lang):
    return Ctx(lang, roofline.PAGE, None, PAGES)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_ridge_with_its_sources(lang):
    table = roofline.ridges_table(ctx(lang))
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    found = {row[0]: row[1:4] for row in rows}
    assert found["NVIDIA H100 SXM 80 GB"] == ["989.4 TFLOP/s", "3.35 TB/s", "295"]
    assert found["NVIDIA A100 SXM 80 GB"] == ["312 TFLOP/s", "2.04 TB/s", "153"]
    assert found["NVIDIA H200"] == ["989.4 TFLOP/s", "4.80 TB/s", "206"]
    for device in devices().values():
        assert (device.title in found) is (device.bf16_flops is not None)
        if device.bf16_flops is not None:
            assert device.flops_source and device.flops_source in table and device.source in table
    assert "kv-quoted" in table and "kv-computed" in table


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_plain_and_the_start_is_offered(lang):
    props = roofline.widget_props(lang)
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    start = props["start"]
    assert start["device"] in {device["name"] for device in props["devices"]}
    assert start["heads"] in props["heads"] and start["kv_heads"] in props["heads"]
    assert start["head_dim"] in props["head_dims"]
    assert all(low <= start[name] <= high for name, (low, high) in props["limits"].items())
    assert all(n & (n - 1) == 0 for n in props["heads"]), "powers of two divide one another"
    most = props["limits"]["batch"][1] * props["limits"]["tokens"][1]
    assert most < 2**53, "rows of a product stay exact as a JavaScript number"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_numbers_in_the_text_are_the_estimators(lang):
    text = " ".join(sections("roofline", lang).values()).replace("\n", " ")
    h100 = device_named("h100-sxm-80gb")
    peaks = (h100.bf16_flops, h100.bandwidth_bytes_per_s)
    assert round(estimator.ridge(*peaks)) == 295 and "295" in text and "989.4" in text and "3.35" in text
    assert round(estimator.gemm(295, 8_192, 8_192).intensity) == 275 and "275" in text
    first = next(n for n in range(1, 1_000) if estimator.gemm(n, 8_192, 8_192).compute_bound(*peaks))
    assert first == 319 and "319" in text
    assert round(estimator.latent_attention(128, 512, 64, 2**20).intensity) == 242 and "242" in text
    assert round(estimator.latent_attention(16, 512, 64, 2**20).intensity) == 30 and "30" in text
    assert f"{(2 * 512 + 64) / (512 + 64):.2f}" == "1.89" and "1.89" in text


def test_the_lab_is_this_pages():
    assert LABS["roofline-device"].page == roofline.PAGE.slug


def test_chinese_punctuation_is_full_width():
    texts = [*strings("roofline", "zh").values(), *sections("roofline", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    limits = sections("roofline", lang)["limits"]
    words = {
        "en": ["lower bound", "oftmax", "Caches", "MLP", "scales", "Absorbing", "prefix", "tensor parallelism"],
        "zh": ["下界", "softmax", "缓存", "MLP", "scale", "吸收", "前缀", "张量并行"],
    }
    assert all(word in limits for word in words[lang])
