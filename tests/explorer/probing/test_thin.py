"""Thin configurations: what is shrunk, what stays, and which layer stands for which."""

import pytest

from explorer.errors import InputError
from explorer.probing.architectures import ARCHITECTURES
from explorer.probing.shrink import Widths
from explorer.probing.thin import thin_config


def test_geometry_stays_and_the_rest_shrinks():
    thin = thin_config(ARCHITECTURES["qwen3"])
    fields = thin.fields
    assert (fields["num_attention_heads"], fields["num_key_value_heads"], fields["head_dim"]) == (32, 8, 128)
    assert (fields["hidden_size"], fields["vocab_size"], fields["intermediate_size"]) == (64, 64, 32)
    assert (thin.num_layers, thin.real_num_layers) == (2, 36)


def test_the_shortest_run_shows_every_kind():
    """Gemma 3: five layers with a window, then one without; MiniMax: seven with a state, then one without."""
    assert thin_config(ARCHITECTURES["gemma3"]).num_layers == 6
    thin = thin_config(ARCHITECTURES["minimax"])
    assert thin.num_layers == 8 and thin.fields["layer_types"] == ["linear_attention"] * 7 + ["full_attention"]
    assert thin.stands_for[:9] == (0, 0, 0, 0, 0, 0, 0, 7, 0)


def test_shared_layers_stay_shared():
    """Gemma 4 E2B: 15 layers of its own show both kinds in five; five more share."""
    thin = thin_config(ARCHITECTURES["gemma4"])
    assert (thin.num_layers, thin.fields["num_kv_shared_layers"]) == (10, 5)
    assert thin.stands_for[:15] == (0, 0, 0, 0, 4) * 3 and set(thin.stands_for[15:]) == {5}


def test_kimi_counts_its_layers_from_one():
    thin = thin_config(ARCHITECTURES["kimi_linear"])
    assert thin.fields["linear_attn_config"]["full_attn_layers"] == [4]
    assert thin.fields["linear_attn_config"]["kda_layers"] == [1, 2, 3]


def test_windows_are_shortened_only_when_asked():
    assert thin_config(ARCHITECTURES["mistral"]).fields["sliding_window"] == 4096
    thin = thin_config(ARCHITECTURES["mistral"], longest_window=100)
    assert thin.fields["sliding_window"] == 100 and thin.scaled_windows == {"sliding_window": (4096, 100)}
    assert not thin_config(ARCHITECTURES["gpt_oss"], longest_window=150).scaled_windows, "128 is short enough"


def test_a_hidden_size_that_is_a_state_size_stays():
    assert thin_config(ARCHITECTURES["mamba2"]).fields["hidden_size"] == 768
    assert thin_config(ARCHITECTURES["qwen3"], widths=Widths(hidden=0)).fields["hidden_size"] == 2560


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "no_such"}, "not known to the installed transformers"),
        ({"model_type": ["llama"]}, "not known to the installed transformers"),
        ({"model_type": "llama", "num_hidden_layers": "many"}, "refuses this llama config"),
        ({"model_type": "llama", "num_hidden_layers": 10**6, "num_key_value_heads": 4}, "1 to 1,024"),
    ],
)
def test_what_cannot_be_thinned_is_refused(config, says):
    with pytest.raises(InputError, match=says):
        thin_config(config)
