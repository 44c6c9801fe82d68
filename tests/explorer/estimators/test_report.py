"""What `estimate` prints and returns."""

import json

import pytest

from explorer.errors import InputError
from explorer.estimators.report import Options, report
from explorer.estimators.report_text import text
from explorer.specs.from_config import from_config
from tests.explorer.specs.family_configs import CONFIGS

KEYS = {
    "total_bytes",
    "bytes_per_token_growing",
    "constant_bytes",
    "ledger",
    "assumptions",
    "total_gib",
    "total_gb",
    "model",
}


def test_llama_3_1_8b_by_hand():
    """131,072 B a token x 131,072 tokens = 2**34 B = 16 GiB = 17.18 GB."""
    result = report("llama-3.1-8b", 131_072)
    assert set(result) >= KEYS
    assert result["total_bytes"] == 2**34
    assert result["total_gib"] == 16.0
    assert result["total_gb"] == 17.179869184
    assert result["bytes_per_token_growing"] == 131_072
    assert result["constant_bytes"] == 0
    assert result["crossing_tokens"] == 122_533
    assert [row["num_layers"] for row in result["ledger"]] == [32]
    assert sum(row["share"] for row in result["ledger"]) == 1.0
    assert result["origin"] == "computed"
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_share_is_of_the_bytes_kept():
    """Chunks of 8,192 beside full layers at 32,768 tokens: 36 x 8,192 of 36 x 8,192 + 12 x 32,768 tokens kept."""
    spec = from_config(CONFIGS["llama-4-scout"])
    shares = {row["kind"]: row["share"] for row in report(spec, 32_768)["ledger"]}
    assert shares["chunked_attention"] == 36 * 8_192 / (36 * 8_192 + 12 * 32_768)
    reads = {row["kind"]: row["read_bytes_per_step"] for row in report(spec, 8_193)["ledger"]}
    assert reads["chunked_attention"] == 36 * 4_096  # one token: the chunk has just begun


def test_text_says_both_units():
    lines = text(report("llama-2-7b", 131_072)).splitlines()
    assert lines[0] == "llama-2-7b, 131,072 (128 Ki) tokens, batch 1, bf16"
    assert lines[1].split("cache")[1].strip() == "64.00 GiB = 68.72 GB = 68,719,476,736 B"
    assert "512.00 KiB (524,288 B)" in lines[2]
    assert any("beyond the 4,096 positions" in line for line in lines)
    assert any("25,706 tokens" in line for line in lines)


def test_config_file_and_folder(tmp_path):
    config = {"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32}
    config |= {"num_key_value_heads": 8, "head_dim": 128}
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    for path in (folder, folder / "config.json"):
        result = report(str(path), 1)
        assert result["model"] == "my-model"
        assert result["total_bytes"] == 147_456
        assert result["weight_bytes_16bit"] is None and result["crossing_tokens"] is None
        assert "weights   " not in text(result)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("llama-3.1-9b", "did you mean llama-3.1-8b"),
        ("nobody/knows-this", "download its config.json"),
        ("missing.json", "no file 'missing.json'"),
        ("/nowhere/at/all", "no file 'all'"),
        ("", "expected a catalogue name"),
        ("a\0b", "expected a catalogue name"),
        ("x" * 300, "no model"),
        ("x" * 100_000, "expected a catalogue name"),
        ("😀", "no model"),
    ],
)
def test_models_that_are_none(model, message):
    with pytest.raises(InputError) as caught:
        report(model, 1)
    assert message in str(caught.value)
    for line in (caught.value.text.en, caught.value.text.zh):
        assert "\n" not in line and "\0" not in line and len(line) < 300


def test_bad_numbers():
    with pytest.raises(InputError, match="tokens=0: expected a whole number of tokens, 1 to 1,073,741,824"):
        report("llama-2-7b", 0)
    with pytest.raises(InputError, match="kv_format='int3': expected one of"):
        report("llama-2-7b", 1, Options(dtype="int3"))
