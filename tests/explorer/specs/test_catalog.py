"""The catalogue: every entry carries a source, and its numbers are those of the architecture itself."""

import json
import re

import pytest

from explorer.errors import InputError
from explorer.specs import catalog
from explorer.specs.dtypes import DTYPES, dtype_of
from explorer.specs.limits import LIMITS, whole

MODELS = json.loads((catalog.FOLDER / "models.json").read_text(encoding="utf-8"))["entries"]


def test_the_promised_presets_are_there():
    assert {"llama-2-7b", "llama-3.1-8b", "qwen3-32b", "smollm2-135m"} <= set(catalog.models())


@pytest.mark.parametrize("name", MODELS)
def test_model_entries_are_sourced(name):
    spec = catalog.model_named(name)
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name)
    assert MODELS[name]["hub_id"] in spec.source
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", spec.date)
    assert spec.verified
    assert spec.assumptions == ()


@pytest.mark.parametrize("name", catalog.devices())
def test_device_entries_are_sourced(name):
    device = catalog.device_named(name)
    assert "data sheet" in device.source or "specifications" in device.source
    assert device.verified and device.memory_source
    # A sheet's "GB" lies between 10**9 and 2**30, seldom below: a unit mistake would fall outside.
    assert 0.93 <= device.memory_bytes / (device.label_gb * 2**30) <= 1.001
    assert 100e9 < device.bandwidth_bytes_per_s < 10e12


@pytest.mark.parametrize("name", MODELS)
def test_parameters_equal_the_real_architecture(name):
    """Build the model's own class without memory (meta device) and count; the heads must be those of the spec too."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    fields = dict(MODELS[name]["config"])
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    spec = catalog.model_named(name)
    assert sum(weight.numel() for weight in model.parameters()) == spec.weight_params
    attention = model.model.layers[0].self_attn
    layer = spec.layers[0]
    assert attention.k_proj.out_features == layer.num_kv_heads * layer.key_dim
    assert attention.v_proj.out_features == layer.num_kv_heads * layer.value_dim
    assert attention.q_proj.out_features == spec.num_heads * layer.key_dim
    assert len(model.model.layers) == len(spec.layers)


def test_names_are_found_and_near_misses_helped():
    assert catalog.model_named(" Llama-3.1-8B ").name == "llama-3.1-8b"
    assert catalog.model_named("Qwen/Qwen3-4B").name == "qwen3-4b"
    with pytest.raises(InputError, match=r"did you mean llama-3\.1-8b\?"):
        catalog.model_named("llama3.1-8b")
    with pytest.raises(InputError, match="there are: llama-2-7b"):
        catalog.model_named("something else")
    with pytest.raises(InputError, match="h100-sxm-80gb"):
        catalog.device_named("abacus")


def test_weight_bytes():
    """134,515,008 weights: two bytes each, one each, half a byte each; odd counts are rounded up to a whole byte."""
    spec = catalog.model_named("smollm2-135m")
    assert spec.weight_bytes() == 269_030_016
    assert spec.weight_bytes(8) == 134_515_008
    assert spec.weight_bytes(4) == 67_257_504


def test_dtypes():
    assert {name: dtype.element_bytes for name, dtype in DTYPES.items()} == {
        "fp32": 4,
        "bf16": 2,
        "fp16": 2,
        "fp8": 1,
        "int8": 1,
    }
    assert dtype_of("bfloat16").name == "bf16"
    assert "scale" in dtype_of("int8").note.en
    with pytest.raises(InputError, match="expected one of fp32, bf16"):
        dtype_of("int4")


@pytest.mark.parametrize("value", [0, -1, 1.5, float("nan"), float("inf"), "1", None, True, 2**31, [1]])
def test_whole_numbers_only(value):
    with pytest.raises(InputError, match=f"tokens={'.*'}: expected a whole number"):
        whole("tokens", value)


def test_limits_take_their_ends():
    for name, limit in LIMITS.items():
        assert whole(name, limit.low) == limit.low
        assert whole(name, limit.high) == limit.high
