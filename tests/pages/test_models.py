"""Models, without a browser: every row against the estimator and by hand, its sources, its texts."""

import json
import re
from itertools import pairwise

import pytest

from explorer.estimators.memory import cache_bytes
from explorer.labs.base import LABS
from explorer.specs import catalog, pieces
from explorer.specs.pieces import Piece, Rows
from explorer.text import LANGUAGES
from pages import PAGES, models, models_rows
from pages._content import sections, strings
from pages._page import Ctx


def ctx(lang):
    return Ctx(lang, models.PAGE, None, PAGES)


def rows(lang="en"):
    return {row["name"]: row for row in models_rows.table_props(ctx(lang))["rows"]}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_the_whole_catalogue_and_plain_json(lang):
    props = models_rows.table_props(ctx(lang))
    assert json.loads(json.dumps(props, allow_nan=False)) == props
    assert [row["name"] for row in props["rows"]] == list(catalog.models())
    assert props["size_page"] == ("./zh-cache-size" if lang == "zh" else "./cache-size")
    sizes = [size for row in props["rows"] for size in row["totals"]]
    assert all(0 < size < 2**53 for size in sizes)  # exact as JavaScript numbers


def test_sizes_by_hand():
    """Llama 2 7B 512 KiB a token; DeepSeek-V3 61 layers of 576 numbers; Gemma 4 31B and V4-Pro as printed."""
    found = rows()
    llama = found["llama-2-7b"]
    assert (llama["slope"]["text"], llama["constant"]["text"]) == ("512.00 KiB", "0 B")
    assert llama["totals"] == [16 * 2**30, 64 * 2**30, 512 * 2**30]
    assert found["deepseek-v3"]["slope"] == {"value": 61 * 576 * 2, "text": "68.63 KiB"}
    assert found["gemma-4-31b"]["totals"][1] == int(10.78125 * 2**30)
    assert found["gemma-4-31b"]["constant"]["value"] == 50 * 1_024 * 2 * 16 * 256 * 2
    assert round(found["deepseek-v4-pro"]["totals"][2] / 2**30, 2) == 9.62
    assert found["qwen3.5-9b"]["slope"]["value"] == 32_768 and found["qwen3.5-9b"]["constant"]["value"] > 0
    assert found["mamba2-2.7b"]["slope"]["value"] == 0


def test_every_row_is_the_estimators():
    for name, row in rows().items():
        spec = catalog.models()[name]
        keep = [Piece(p["tensor"], p["bytes"], Rows(p["every"], p["skip"], p["cap"])) for p in row["keep"]]
        for tokens in (1, 100, 5_000, 777_777, *models_rows.LENGTHS):
            assert pieces.total(keep, tokens) == cache_bytes(spec, tokens).total_bytes
        assert row["totals"] == [cache_bytes(spec, tokens).total_bytes for tokens in models_rows.LENGTHS]
        long = [cache_bytes(spec, tokens).total_bytes for tokens in (2**26, 2**26 + 2**12)]
        assert row["slope"]["value"] == (long[1] - long[0]) / 2**12  # what a token adds, seen from the sizes
        assert row["constant"]["value"] == long[0] - row["slope"]["value"] * 2**26


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_row_says_its_source_its_date_and_whether_it_was_checked(lang):
    for name, row in rows(lang).items():
        entry = catalog.entries()[name]
        assert row["source"] and re.fullmatch(r"20\d\d(-\d\d){0,2}", row["date"])
        assert row["is_verified"] == entry.is_verified and len(row["verified"]) > 10
        assert len(row["printed"]) == len(entry.printed) and row["organisation"] == entry.organisation
    assert {row["is_verified"] for row in rows(lang).values()} == {True, False}
    page = models.left_out_list(ctx(lang))
    assert all(title in page and reason.get(lang) in page for title, reason in catalog.left_out().values())


def test_kinds_name_what_keeps_something():
    found = rows("zh")
    assert found["gemma-3-27b"]["kinds"].keys() == {"sliding_window", "full_attention"}
    assert "shared" not in found["gemma-4-e2b"]["kinds"] and "recurrent_state" in found["zamba2-2.7b"]["kinds"]
    assert found["llama-2-7b"]["kinds"] == {"full_attention": "全注意力"}


def test_its_place_and_its_lab():
    assert (models.PAGE.part, models.PAGE.order) == (5, 1)
    assert all((a.part, a.order) < (b.part, b.order) for a, b in pairwise(PAGES))
    assert LABS["estimate-proof"].page == models.PAGE.slug


def test_both_languages_have_the_same_texts():
    assert strings("models", "en").keys() == strings("models", "zh").keys()
    assert sections("models", "en").keys() == sections("models", "zh").keys()
    texts = [*strings("models", "zh").values(), *sections("models", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_caveats_are_all_there(lang):
    limits = sections("models", lang)["limits"]
    words = {
        "en": [
            "ranking",
            "as published",
            "Unverified",
            "Stated is not usable",
            "one sequence",
            "Weights are not memory",
        ],
        "zh": ["排名", "发布的配置", "未核对", "标称不等于可用", "一条序列", "权重不等于显存"],
    }
    assert all(word in limits for word in words[lang])
