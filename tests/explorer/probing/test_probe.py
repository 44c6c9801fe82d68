"""Measuring what no reader knows; hostile configurations end in a refusal, within limits."""

import json

import pytest

from explorer.cli import main
from explorer.cli.models import spec_of
from explorer.errors import InputError
from explorer.probing.architectures import ARCHITECTURES
from explorer.probing.measure import unreached_limits
from explorer.probing.probe import NotMeasured, spec_from_probe
from explorer.specs.from_config import from_config

# MiMo-V2-Flash: Keys of 192, Values of 128; 9 of 48 layers full with 4 heads, 39 with a window of 128 and 8 heads.
MIMO = {
    "model_type": "mimo_v2_flash", "num_hidden_layers": 12, "hidden_size": 4096, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "swa_num_key_value_heads": 8,
    "sliding_window": 128, "layer_types": ["full_attention", *["sliding_attention"] * 5] * 2,
}  # fmt: skip
# MiniCPM3-4B: MLA with a latent of 256 and 32 for positions.
MINICPM3 = {
    "model_type": "minicpm3", "num_hidden_layers": 62, "hidden_size": 2560, "num_attention_heads": 40,
    "num_key_value_heads": 40, "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32, "v_head_dim": 64,
}  # fmt: skip


def test_layers_of_two_kinds_and_unequal_keys_and_values():
    """2 x 4 heads x 320 x 2 bytes = 5,120 a token; 10 x 8 heads x 320 x 128 x 2 bytes = 6,553,600 for windows."""
    spec = spec_from_probe(MIMO, "mimo")
    assert sum(layer.growing_bytes_per_token("bf16") for layer in spec.layers) == 5_120
    assert sum(layer.constant_bytes("bf16") for layer in spec.layers) == 6_553_600
    assert "probed" in spec.assumptions[0].en and "实测" in spec.assumptions[0].zh
    assert (spec.name, len(spec.layers), spec.num_heads, spec.hidden_size) == ("mimo", 12, 64, 4096)


def test_the_command_line_measures_what_it_cannot_read(tmp_path, capsys, monkeypatch):
    """As if no reader were there. 62 layers x (256 + 32) x 2 bytes = 35,712 a token."""
    monkeypatch.setattr("explorer.specs.from_config.readers", dict)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(MINICPM3))
    assert main.main(["estimate", str(file), "--tokens", "1000", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert (found["bytes_per_token_growing"], found["total_bytes"]) == (35_712, 35_712_000)
    assert any("probed" in line for line in map(str, found["assumptions"]))
    assert "measuring a thin model" in err


def test_what_is_probed_is_what_is_read():
    """Where there is a reader too, both must come to the same: Gemma 4 E2B, with shared layers and a long window."""
    read, probed = from_config(ARCHITECTURES["gemma4"]), spec_from_probe(ARCHITECTURES["gemma4"])
    for kv_len in (1, 511, 512, 513, 100_000):
        assert [layer.bytes_at(kv_len, "bf16") for layer in probed.layers] == [
            layer.bytes_at(kv_len, "bf16") for layer in read.layers
        ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_attention_heads": 10**12}, "refuses|larger|thin|ended|longer|memory"),
        ({"hidden_size": -4}, "refuses|whole number"),
        ({"num_hidden_layers": 10**12}, "1 to 1,024"),
        ({"q_lora_rank": float("inf")}, "refuses|ended"),
        ({"kv_lora_rank": 10**11}, "weights|ended|memory|refuses"),
        ({"auto_map": {"AutoConfig": "evil.Config"}, "hidden_act": "os.system"}, "refuses"),
    ],
)
def test_hostile_configurations_are_refused(change, says):
    with pytest.raises(InputError, match=says):
        spec_from_probe(MINICPM3 | change, limit_s=60)


def test_a_limit_ends_it():
    with pytest.raises(NotMeasured, match="longer than the 1 s"):
        spec_from_probe(MINICPM3, limit_s=1)


@pytest.mark.parametrize("config", [[], None, {"model_type": 7}, {"a": 1}])
def test_no_config_at_all(config):
    with pytest.raises(InputError, match="model_type"):
        spec_from_probe(config)


def test_a_name_that_nobody_knows(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "lama_9"}')
    with pytest.raises(InputError, match=r"no reader knows .*nearest.*could not be measured either.*does not know it"):
        spec_of(str(file))


def test_limits_that_were_not_reached_are_named():
    known = {
        "sliding_window": 4096,
        "local_window_size": 512,
        "chunk_sizes": [64, 8192],
        "window_bias": 3,
        "heads": 999,
    }
    assert unreached_limits(known) == ["chunk_sizes", "local_window_size"]
