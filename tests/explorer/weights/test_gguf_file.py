"""A GGUF file becomes the same model: tensors, configuration and tokenizer, against the model that it was made from."""

import json
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from explorer.errors import InputError
from explorer.weights.folder import check_folder
from explorer.weights.gguf_file import convert, hugging_face_name

PROMPT = torch.tensor([[3, 1, 4, 1, 5, 92, 65, 35]])


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_unquantised_file_gives_the_same_logits(family, tied, make_model, make_gguf, tmp_path):
    model = make_model(family, tied=tied)
    (tmp_path / "out").mkdir()
    assert convert(make_gguf(model, tmp_path / "m.gguf"), tmp_path / "out", lambda _: None) == "F32"
    converted = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    assert converted.config.model_type == family
    with torch.no_grad():
        assert torch.equal(converted(PROMPT).logits, model(PROMPT).logits)


def test_quantised_values_equal_transformers_own_reading_rounded_to_bf16(tiny_gguf, make_model, tmp_path):
    from safetensors.torch import load_file
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    assert convert(tiny_gguf, tmp_path, lambda _: None) == "Q4_1"
    ours = load_file(tmp_path / "model.safetensors")
    theirs = load_gguf_checkpoint(str(tiny_gguf), return_tensors=True, model_to_load=make_model())["tensors"]
    assert set(ours) == set(theirs)
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor.bfloat16()), name


def test_tied_embedding_is_stored_once_and_header_is_sound(tiny_gguf, tmp_path):
    convert(tiny_gguf, tmp_path, lambda _: None)
    facts = check_folder(tmp_path)
    assert facts.dtype == "BF16"
    assert "lm_head.weight" not in facts.tensors
    assert facts.config["tie_word_embeddings"] is True
    assert facts.config["rope_theta"] == facts.config["rope_parameters"]["rope_theta"] == 5_000.0


def test_progress_reaches_the_bytes_of_the_weights(tiny_gguf, tmp_path):
    seen = []
    convert(tiny_gguf, tmp_path, seen.append)
    done = [step.done_bytes for step in seen]
    assert done == sorted(done) and done[0] == 0 and len(done) > 10
    assert seen[-1].done_bytes == seen[-1].total_bytes
    with (tmp_path / "model.safetensors").open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
    assert (tmp_path / "model.safetensors").stat().st_size == 8 + header_bytes + seen[-1].total_bytes


def test_tokenizer_splits_digits_as_smollm_does(tiny_gguf, tmp_path):
    convert(tiny_gguf, tmp_path, lambda _: None)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    # "1 2" is a merge of this vocabulary; a digit alone can never meet another one.
    assert tokenizer("a12").tokens() == ["a", "1", "2"]
    assert tokenizer.decode(tokenizer("he 12 你好 🙂").input_ids) == "he 12 你好 🙂"
    assert (
        json.loads((tmp_path / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"][0]["type"] == "Digits"
    )


@pytest.mark.parametrize("name", ["blk.0.ffn_gate_exps.weight", "rope_freqs.weight", "blk.0.attn_q", "x", ""])
def test_unknown_tensor_is_refused(name):
    with pytest.raises(InputError, match="parts that the engine does not have"):
        hugging_face_name(name)


def test_scaled_rope_is_refused_rather_than_dropped(make_model, make_gguf, tmp_path):
    path = make_gguf(make_model(), tmp_path / "m.gguf", extra={"llama.rope.scaling.type": "yarn"})
    with pytest.raises(InputError, match="scaled RoPE"):
        convert(path, tmp_path, lambda _: None)


def test_damaged_files_give_one_line(tiny_gguf, tmp_path):
    content = tiny_gguf.read_bytes()
    chance = random.Random(0)
    cases = [b"GGUF", b"GGUF" + bytes(64), content[:1000], content[: len(content) // 2], content[:-1]]
    cases += [b"GGUF" + chance.randbytes(2000), b"GGUF\x03\x00\x00\x00" + chance.randbytes(2000)]
    for position in chance.sample(range(4, 400), 12):
        cases.append(content[:position] + b"\xff" * 8 + content[position + 8 :])
    for number, case in enumerate(cases):
        path, out = tmp_path / f"{number}.gguf", tmp_path / f"out{number}"
        path.write_bytes(case)
        out.mkdir()
        accepted, line = False, ""
        try:
            convert(path, out, lambda _: None)
            accepted = True
        except InputError as error:
            line = str(error)
        # One altered metadata entry (from case 7 on) may be one that is not needed.
        assert number >= 7 or not accepted, f"truncated or random file {number} was accepted"
        assert "\n" not in line and str(tmp_path) not in line
