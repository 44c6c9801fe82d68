"""The real default model: its numbers, its tokenizer, and that it still knows the capital of France."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from explorer.weights import DEFAULT_MODEL, resolve
from explorer.weights.cache import WeightCache
from explorer.weights.folder import check_folder
from explorer.weights.package import DEFAULT_PACKAGE

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def files():
    """From the user's cache, or fetched into it."""
    return resolve()


def test_shape_is_smollm2_135m(files):
    config = AutoConfig.from_pretrained(files.path)
    expected = {
        "model_type": "llama",
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "vocab_size": 49_152,
        "tie_word_embeddings": True,
        "max_position_embeddings": 8192,
    }
    assert {key: getattr(config, key) for key in expected} == expected
    assert config.rope_parameters["rope_theta"] == 100_000.0


def test_embedding_is_stored_once_and_every_weight_in_two_bytes(files):
    facts = check_folder(files.path)
    assert facts.dtype == files.dtype == "BF16"
    assert len(facts.tensors) == 272 and "lm_head.weight" not in facts.tensors
    layer = 576 * (9 + 3 + 3 + 9) * 64 + 3 * 576 * 1536 + 2 * 576
    weights_bytes = 2 * (49_152 * 576 + 30 * layer + 576)
    assert weights_bytes == 269_030_016
    size = sum(path.stat().st_size for path in files.path.glob("*.safetensors"))
    assert weights_bytes < size < weights_bytes + 100_000  # and a header


def test_where_it_came_from_is_said(files):
    assert files.name == DEFAULT_MODEL and files.licence == "apache-2.0" and len(files.weight_hash) == 12
    if files.source == "package":
        assert files.quantisation == "Q4_1" and files.weight_hash == DEFAULT_PACKAGE.sha256[:12] == "b179c9523d0e"
        assert "Q4_1 dequantised to bf16" in files.detail
    else:
        assert files.source == "hub" and files.quantisation is None


def test_tokenizer(files):
    tokenizer = AutoTokenizer.from_pretrained(files.path)
    assert tokenizer.is_fast and len(tokenizer) == 49_152
    assert tokenizer("Hello world").input_ids == [19556, 905]  # no beginning-of-text token is added
    assert tokenizer("a  12").tokens() == ["a", "ĠĠ", "1", "2"]
    for text in ("你好，世界 🙂", "مرحبا", "x = [1, 23]\n\tpass"):
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer("<|im_end|>").input_ids == [2] and tokenizer.eos_token_id == 2


def test_it_answers(files):
    tokenizer = AutoTokenizer.from_pretrained(files.path)
    model = AutoModelForCausalLM.from_pretrained(files.path, dtype=torch.float32).eval()
    question = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)


def test_cached_files_are_as_they_were_written(files):
    cache = WeightCache()
    manifest = cache.find(cache.key_of(DEFAULT_MODEL), verify=True)
    assert manifest is not None and {"config.json", "tokenizer.json", "model.safetensors"} <= set(manifest.files)
