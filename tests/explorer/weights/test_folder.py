"""A folder that is not a model is refused with the one thing that is wrong, in both languages and without its path."""

import json

import pytest

from explorer.errors import InputError
from explorer.text import Text
from explorer.weights import folder as model_folder
from explorer.weights.folder import check_folder, shard_names
from explorer.weights.prepared import local_folder


def refused(folder) -> Text:
    with pytest.raises(InputError) as caught:
        check_folder(folder)
    text = caught.value.text
    for line in (text.en, text.zh):
        assert "\n" not in line and str(folder.parent) not in line
    assert text.en != text.zh
    return text


def test_a_good_folder(make_folder):
    folder = make_folder("my-model")
    files = local_folder(folder)
    assert (files.name, files.source, files.dtype, files.path) == ("my-model", "local", "F32", folder)
    assert len(files.weight_hash) == 12 and files.quantisation is None and not files.from_cache


def test_hash_tells_weights_apart_and_not_folders(make_folder):
    one, same, other = make_folder("a"), make_folder("b"), make_folder("c", fill=2.0)
    assert check_folder(one).weight_hash == check_folder(same).weight_hash != check_folder(other).weight_hash


def test_hash_does_not_depend_on_sharding(make_model, tmp_path):
    model = make_model()
    for name, size in (("whole", "1GB"), ("shards", "20KB")):
        model.save_pretrained(tmp_path / name, max_shard_size=size)
        (tmp_path / name / "tokenizer.json").write_text("{}")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    whole, shards = check_folder(tmp_path / "whole"), check_folder(tmp_path / "shards")
    assert whole.weight_hash == shards.weight_hash and whole.tensors == shards.tensors


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("config.json", model_folder.NO_CONFIG),
        ("model.safetensors", model_folder.NO_WEIGHTS),
        ("tokenizer.json", model_folder.NO_TOKENIZER),
    ],
)
def test_missing_file(make_folder, missing, expected):
    assert refused(make_folder(without=(missing,))) == expected


def test_empty_folder(tmp_path):
    assert refused(tmp_path) == model_folder.NO_CONFIG


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '{"model_type": 3}', "\x00\xff", "[" * 100_000])
def test_broken_configuration(make_folder, content):
    folder = make_folder()
    (folder / "config.json").write_text(content, encoding="latin-1")
    assert refused(folder) == model_folder.BAD_CONFIG


@pytest.mark.parametrize("family", ["gpt2", "gemma3", "", "LLAMA", "../llama"])
def test_other_family_names_the_supported_ones(make_folder, family):
    text = refused(make_folder(config={"model_type": family}))
    assert "llama, mistral, qwen2, qwen3" in text.en and "qwen3" in text.zh


def test_packed_weights(make_folder):
    assert refused(make_folder("a", config={"quantization_config": {"quant_method": "gptq"}})) == model_folder.PACKED
    assert refused(make_folder("b", dtype="I32")) == model_folder.PACKED


NAME = "model.embed_tokens.weight"
BROKEN_BYTES = {
    "empty": lambda content: b"",
    "short": lambda content: content[:-1],
    "long": lambda content: content + b"\0",
    "no header": lambda content: content[:8],
    "huge header length": lambda content: b"\xff" * 8 + content[8:],
    "text": lambda content: b"<!doctype html><title>Not found</title>",
    "pickle": lambda content: b"PK\x03\x04" + bytes(100),
}
BROKEN_HEADERS = {
    "not an object": lambda tensor: [1, 2],
    "no tensors": lambda tensor: {},
    "gap": lambda tensor: {NAME: tensor | {"data_offsets": [8, 128]}},
    "backwards": lambda tensor: {NAME: tensor | {"data_offsets": [128, 0]}},
    "words": lambda tensor: {NAME: tensor | {"data_offsets": "from here"}},
    "no dtype": lambda tensor: {NAME: {key: tensor[key] for key in ("shape", "data_offsets")}},
}


@pytest.mark.parametrize("how", [*BROKEN_BYTES, *BROKEN_HEADERS])
def test_broken_safetensors(make_folder, how):
    path = make_folder() / "model.safetensors"
    content = path.read_bytes()
    assert check_folder(path.parent)
    if how in BROKEN_BYTES:
        path.write_bytes(BROKEN_BYTES[how](content))
    else:
        size = int.from_bytes(content[:8], "little")
        tensor = json.loads(content[8 : 8 + size])[NAME]
        encoded = json.dumps(BROKEN_HEADERS[how](tensor)).encode()
        path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + content[8 + size :])
    assert refused(path.parent) == model_folder.BAD_WEIGHTS


@pytest.mark.parametrize(
    "index",
    [None, [], {}, {"weight_map": {}}, {"weight_map": 3}]
    + [{"weight_map": {"a": name}} for name in ("../up.safetensors", "/etc/x.safetensors", "a.bin", 3, ["x"], "")],
)
def test_index_that_points_elsewhere(index):
    with pytest.raises(InputError):
        shard_names(index)


def test_missing_shard(make_folder):
    folder = make_folder(without=("model.safetensors",))
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    assert refused(folder) == model_folder.BAD_WEIGHTS
