"""`python -m explorer estimate`: options, configs of every family, and hostile files: exit 2 and one line, at once."""

import json
import time

import pytest

from explorer.cli.main import main
from explorer.specs.from_config import from_config
from explorer.specs.readers import readers
from tests.explorer.specs.family_configs import CONFIGS

GIB = 2**30


@pytest.fixture
def config_file(tmp_path):
    def write(config, name="config.json"):
        file = tmp_path / name
        file.write_bytes(config if isinstance(config, bytes) else json.dumps(config).encode())
        return str(file)

    return write


def run(capsys, *words):
    code = main(["estimate", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def estimate(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_deepseek_v4_pro(capsys, config_file):
    found = estimate(capsys, config_file(CONFIGS["deepseek-v4-pro"]), "--tokens", str(2**20))
    assert f"{found['total_gib']:.2f}" == "9.62"
    assert found["bytes_per_token_growing"] == 9_848 and found["constant_bytes"] == 61 * 131_072
    assert [row["num_layers"] for row in found["ledger"]] == [31, 30]
    counted = estimate(
        capsys, config_file(CONFIGS["deepseek-v4-pro"]), "--tokens", "1048576", "--assume", "compressor-state"
    )
    assert counted["total_bytes"] > found["total_bytes"]
    assert [s["chosen"] for s in counted["switches"]] == [True]


def test_gemma_4_31b_switch(capsys, config_file):
    file = config_file(CONFIGS["gemma-4-31b"])
    assert estimate(capsys, file, "--tokens", "131072")["total_gib"] == 10.78125
    once = estimate(capsys, file, "--tokens", "131072", "--assume", "k-eq-v-stored-once")
    assert once["total_gib"] == 5.390625
    assert any("one stored tensor" in line for line in once["assumptions"])
    _, out, _ = run(capsys, file, "--tokens", "131072")
    assert "switch     --assume k-eq-v-stored-once" in out and "10.78 GiB" in out


def test_qwen3_5_9b_state_is_named(capsys, config_file):
    found = estimate(capsys, config_file(CONFIGS["qwen3.5-9b"]), "--tokens", "131072")
    assert found["bytes_per_token_growing"] == 32_768
    state = found["ledger"][0]
    assert (state["kind"], state["num_layers"], state["constant_bytes"]) == ("recurrent_state", 24, 51_511_296)
    assert "Gated DeltaNet" in state["shape"] and state["formats"] == {"state": "fp32", "conv": "bf16"}
    with_draft = estimate(capsys, config_file(CONFIGS["qwen3.5-9b"]), "--tokens", "1", "--include-mtp")
    assert with_draft["bytes_per_token_growing"] == 32_768 + 4_096 and with_draft["ledger"][-1]["mtp"]


def test_ranks_and_packed_formats(capsys, config_file):
    file = config_file(CONFIGS["deepseek-v3.2"])
    found = estimate(capsys, file, "--tokens", "1", "--kv-format", "fp8_ds_mla", "--tp", "8")
    assert found["total_bytes"] == found["per_rank"]["total_bytes"] == 48_068
    assert found["per_rank"]["all_ranks_bytes"] == 8 * 48_068
    assert found["kv_format"] == "fp8_ds_mla" and found["dtype"] == "bf16"
    _, out, _ = run(capsys, file, "--tokens", "1", "--tp", "8", "--dp", "2", "--batch", "4")
    assert "on the fullest (tp 8, pp 1, dp 2)" in out and "copies included" in out


def test_a_fraction_of_a_byte_a_token(capsys, config_file):
    """HCA in 4.5-bit entries: 31 layers x 288 B for every 128 tokens is no whole number."""
    file = config_file(CONFIGS["deepseek-v4-pro"])
    found = estimate(capsys, file, "--tokens", "1000", "--kv-format", "q4_0")
    assert found["bytes_per_token_growing"] == 30 * (288 + 72) / 4 + 31 * 288 / 128 == 2_769.75
    _, out, _ = run(capsys, file, "--tokens", "1000", "--kv-format", "q4_0")
    assert "2,769.75 B on average" in out


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family_prints(capsys, config_file, name):
    code, out, err = run(capsys, config_file(CONFIGS[name]), "--tokens", "4096", "--batch", "2")
    assert (code, err) == (0, "") and "cache" in out and "assumed" in out


NESTED = b'{"a":' * 3_000 + b"1" + b"}" * 3_000
HOSTILE_FILES = {
    "a list": b"[1, 2]",
    "a number": b"7",
    "nothing": b"",
    "binary": bytes(range(256)) * 10,
    "nested 3,000 deep": NESTED,
    "NaN": b'{"model_type": "gemma3_text", "num_hidden_layers": NaN}',
    "50 MB": b" " * 50_000_000,
    "10^12 layers": json.dumps(CONFIGS["gemma-4-31b"] | {"num_hidden_layers": 10**12}).encode(),
    "negative window": json.dumps(CONFIGS["gemma-3-27b"] | {"sliding_window": -1}).encode(),
    "heads that do not divide": json.dumps(CONFIGS["gpt-oss-20b"] | {"num_key_value_heads": 7}).encode(),
    "strings": json.dumps(CONFIGS["deepseek-v3"] | {"kv_lora_rank": "512"}).encode(),
    "missing layers": json.dumps({"model_type": "deepseek_v3", "num_attention_heads": 8}).encode(),
    "no family": json.dumps({"model_type": None}).encode(),
    "a family that is a list": json.dumps({"model_type": ["llama"]}).encode(),
}
UNKNOWN = {
    "no such family": json.dumps({"model_type": "no-such-family"}).encode(),
    "duplicate keys and control characters": b'{"model_type": "x\\u0000\\n", "model_type": "y\\u001b[31m"}',
    "a path": json.dumps({"model_type": "../../etc/passwd"}).encode(),
}


@pytest.mark.parametrize("content", HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_hostile_files(capsys, config_file, content):
    started = time.perf_counter()
    code, out, err = run(capsys, config_file(content), "--tokens", "4096", "--json")
    assert time.perf_counter() - started < 3
    assert (code, out) == (2, "")
    assert err.startswith("explorer: ") and err.count("\n") == 1 and err.rstrip("\n").isprintable()


@pytest.mark.parametrize("content", UNKNOWN.values(), ids=UNKNOWN)
def test_families_that_nobody_knows(capsys, config_file, content):
    """No process is started to measure them: that transformers does not list them is found out at once."""
    started = time.perf_counter()
    code, out, err = run(capsys, config_file(content), "--tokens", "4096", "--json")
    assert time.perf_counter() - started < 2
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert err.startswith("explorer: model_type is ") and err.rstrip("\n").isprintable()


def test_a_family_that_transformers_lists_is_measured(capsys, config_file, monkeypatch):
    """The measuring is stood in for: here it is only asked whether it is called, with what, and told."""
    pytest.importorskip("transformers")
    asked = []

    def probe(config, name):
        asked.append((config["model_type"], name))
        return from_config(CONFIGS["llama-3.1-8b"], name)

    monkeypatch.setattr("explorer.probing.probe.spec_from_probe", probe)
    monkeypatch.setattr("explorer.specs.from_config.readers", lambda: {"llama": readers()["llama"]})
    code, out, err = run(capsys, config_file(CONFIGS["gemma-7b"], "gemma.json"), "--tokens", "1", "--json")
    assert (code, asked) == (0, [("gemma", "gemma.json")]) and "measuring" in err
    assert json.loads(out)["total_bytes"] == 131_072


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tp", "0"], "tp=0"),
        (["--tp", "x"], "tp"),
        (["--tp", "3"], "cannot be shared evenly"),
        (["--pp", "33"], "pp=33"),
        (["--kv-format", "q9"], "kv_format='q9'"),
        (["--kv-format", "q4_0", "--dtype", "fp8"], "the model's own format"),
        (["--assume", "nothing"], "no such switch"),
        (["--dtype", "int1"], "expected one of"),
    ],
)
def test_wrong_options(capsys, config_file, words, message):
    code, out, err = run(capsys, config_file(CONFIGS["llama-3.1-8b"]), "--tokens", "10", *words)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def answering(files, *, content=b"{}", error=None):
    """A Hub that knows one model."""

    def ask(task, folder, on_bytes, limit_s):
        del on_bytes
        assert limit_s <= 10
        if error is not None:
            raise error
        if task["do"] == "info":
            return {"commit": "0" * 40, "licence": None, "files": files}
        assert task["files"] == ["config.json"]  # nothing else is ever fetched
        (folder / "config.json").write_bytes(content)
        return {}

    return ask


def test_a_hub_id(capsys, monkeypatch):
    content = json.dumps(CONFIGS["deepseek-v3"]).encode()
    files = {
        "config.json": {"size": len(content), "sha256": None},
        "model.safetensors": {"size": 10**12, "sha256": None},
    }
    monkeypatch.setattr("explorer.weights.hub.ask_hub", answering(files, content=content))
    code, out, err = run(capsys, "someone/some-model", "--tokens", "1", "--json")
    assert code == 0 and "asking the Hugging Face Hub" in err
    found = json.loads(out)
    assert (found["model"], found["total_bytes"]) == ("someone/some-model", 70_272)


@pytest.mark.parametrize(
    ("files", "message"),
    [({}, "has no config.json"), ({"config.json": {"size": 10**8, "sha256": None}}, "larger than 4 MiB")],
)
def test_a_hub_model_without_a_usable_config(capsys, monkeypatch, files, message):
    monkeypatch.setattr("explorer.weights.hub.ask_hub", answering(files))
    code, out, err = run(capsys, "someone/some-model", "--tokens", "1")
    assert (code, out) == (2, "") and message in err


def test_a_hub_that_is_not_there(capsys, monkeypatch):
    from explorer.weights.hub import UNREACHABLE
    from explorer.weights.source_error import SourceError

    monkeypatch.setattr("explorer.weights.hub.ask_hub", answering({}, error=SourceError(UNREACHABLE)))
    code, out, err = run(capsys, "someone/qwen3-4bb", "--tokens", "1")
    assert (code, out) == (2, "")
    assert "did you mean qwen3-4b?" in err and "not reachable" in err and "give its path" in err


def test_catalogue_names_are_not_looked_up_elsewhere(capsys, monkeypatch):
    monkeypatch.setattr("explorer.weights.hub.ask_hub", answering({}, error=AssertionError("asked")))
    assert estimate(capsys, "llama-3.1-8b", "--tokens", "131072")["total_gib"] == 16
    assert estimate(capsys, "Qwen/Qwen3-4B", "--tokens", "1")["total_bytes"] == 147_456
