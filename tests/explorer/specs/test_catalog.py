"""The catalogue: every entry carries a source, and its numbers are those of the architecture itself."""

import json
import re

import pytest

from explorer.errors import InputError
from explorer.specs import catalog
from explorer.specs.dtypes import DTYPES, dtype_of
from explorer.specs.layers import FullAttention
from explorer.specs.limits import LIMITS, whole

MODELS = json.loads((catalog.FOLDER / "models.json").read_text(encoding="utf-8"))["entries"]
# The class for these is not in transformers 5.24, or the layout is known only in part.
NOT_BUILT = {"kimi-k3", "kimi-k3.1-pro"}
OLDER_NAMES = {"kimi_k2": "deepseek_v3"}


def test_the_promised_models_are_there():
    promised = """
        llama-2-7b llama-2-13b llama-2-70b llama-3.1-8b llama-3.1-70b llama-3.1-405b mistral-7b gemma-7b gemma-2-9b
        gemma-2-27b gemma-3-1b gemma-3-4b gemma-3-12b gemma-3-27b gemma-3n-e2b gemma-3n-e4b gemma-4-e2b gemma-4-e4b
        gemma-4-26b-a4b gemma-4-31b qwen2-72b qwen2.5-7b qwen2.5-72b qwen3-0.6b qwen3-4b qwen3-8b qwen3-32b
        qwen3-235b-a22b qwen3-next-80b qwen3.5-4b qwen3.5-9b qwen3.5-27b phi-3-mini phi-4 gpt-oss-20b gpt-oss-120b
        deepseek-v2 deepseek-v3 deepseek-v3.2 deepseek-v4-flash deepseek-v4-pro kimi-k2 kimi-k2.5 kimi-linear-48b
        kimi-k3 kimi-k3.1-pro minimax-text-01 minimax-m2 glm-4.5 mamba-2.8b mamba2-2.7b rwkv-4-169m smollm2-135m
        smollm2-360m smollm2-1.7b smollm3-3b llama-4-scout llama-4-maverick mixtral-8x7b falcon-7b
    """
    assert set(promised.split()) <= set(catalog.models())


@pytest.mark.parametrize("name", MODELS)
def test_model_entries_are_sourced(name):
    spec, entry = catalog.model_named(name), catalog.entries()[name]
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name)
    assert MODELS[name]["hub_id"] in spec.source
    assert re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", spec.date)
    assert spec.verified and entry.organisation and entry.attention
    assert not [line for line in spec.assumptions if "not given" in line.en], "an entry names its own fields"
    if entry.printed or entry.context:
        assert "source documents" in spec.source


def test_what_could_not_be_verified_says_so():
    for name, entry in catalog.entries().items():
        words = catalog.model_named(name).verified.en
        assert entry.is_verified != bool(re.search(r"not verified|no copy|not compared", words)), (name, words)
    assert not catalog.entries()["kimi-k3.1-pro"].is_verified
    title, reason = catalog.left_out()["bonsai-8b"]
    assert title == "Bonsai 8B" and "head counts" in reason.en and "没有头数" in reason.zh
    with pytest.raises(InputError, match="bonsai-8b is not in the catalogue: the documents list it"):
        catalog.model_named("Bonsai-8B")


@pytest.mark.parametrize("name", catalog.devices())
def test_device_entries_are_sourced(name):
    device = catalog.device_named(name)
    assert "data sheet" in device.source or "specifications" in device.source
    assert device.verified and device.memory_source
    # A sheet's "GB" lies between 10**9 and 2**30, seldom below: a unit mistake would fall outside.
    assert 0.93 <= device.memory_bytes / (device.label_gb * 2**30) <= 1.001
    assert 100e9 < device.bandwidth_bytes_per_s < 10e12


@pytest.mark.parametrize("name", [name for name in MODELS if name not in NOT_BUILT])
def test_parameters_equal_the_real_architecture(name):
    """Build the model's own class without memory (meta device) and count its weights and KV heads."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    fields = dict(MODELS[name]["config"])
    model_type = fields.pop("model_type")
    config = transformers.AutoConfig.for_model(OLDER_NAMES.get(model_type, model_type), **fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    spec = catalog.model_named(name)
    assert sum(weight.numel() for weight in model.parameters()) == spec.weight_params
    if all(isinstance(layer, FullAttention) for layer in spec.layers) and hasattr(model, "model"):
        attention, layer = model.model.layers[0].self_attn, spec.layers[0]
        if hasattr(attention, "k_proj") and hasattr(attention, "v_proj"):
            assert attention.k_proj.out_features == layer.num_kv_heads * layer.key_dim
            assert attention.v_proj.out_features == layer.num_kv_heads * layer.value_dim
        assert len(model.model.layers) == len(spec.layers)


def test_weights_of_kimi_k3_by_its_tensors():
    """2.78 T: the tensors of a published list, those of the language model. Experts are 92 layers of 896, each of three
    3,072 x 3,584 matrices; 69 KDA and 24 MLA layers; the rest is shared experts, routers, embeddings and norms."""
    width, inner = 7168, 96 * 128
    experts = 92 * 896 * 3 * 3072 * 3584
    routing = 92 * (896 + 896 * width + 2 * 3584 * width + 3584 + 3 * width * 6144)
    kda_gates = 128 + 96 * width + inner + 128 * width + inner * 128 + 128
    kda = 69 * (kda_gates + 3 * inner * 4 + 3 * inner * width)
    mla = 24 * (512 + 576 * width + 24576 * 512 + 1536 + 1536 * width + 18432 * 1536)
    every_layer = 93 * (6 * width + 2 * inner * width)
    rest = 2 * 163840 * width + 3 * width * 33792 + 3 * width
    spec = catalog.model_named("kimi-k3")
    assert experts + routing + kda + mla + every_layer + rest == spec.weight_params == 2_779_484_478_208
    assert catalog.model_named("kimi-k3.1-pro").weight_params is None


def test_names_are_found_and_near_misses_helped():
    assert catalog.model_named(" Llama-3.1-8B ").name == "llama-3.1-8b"
    assert catalog.model_named("Qwen/Qwen3-4B").name == "qwen3-4b"
    with pytest.raises(InputError, match=r"did you mean llama-3\.1-8b\?"):
        catalog.model_named("llama3.1-8b")
    with pytest.raises(InputError, match=r"did you mean gemma-4-31b\?"):
        catalog.model_named("gemma4-31b")
    with pytest.raises(InputError, match=r"there are: llama-2-7b, .* and \d+ more"):
        catalog.model_named("something else")
    with pytest.raises(InputError, match="h100-sxm-80gb"):
        catalog.device_named("abacus")


def test_switches_by_name():
    """Gemma 4 31B with one stored tensor for K and V: half the bytes. A switch that a model has not is refused."""
    layers = catalog.model_named("gemma-4-31b").layers
    once = catalog.model_named("gemma-4-31b", ["k-eq-v-stored-once"]).layers
    assert sum(x.bytes_at(5000, 2) for x in layers) == 2 * sum(x.bytes_at(5000, 2) for x in once)
    with pytest.raises(InputError, match="no such switch"):
        catalog.model_named("llama-2-7b", ["k-eq-v-stored-once"])


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
