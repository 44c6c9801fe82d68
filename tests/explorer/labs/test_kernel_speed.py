"""The lab kernel-speed on a CPU: rates follow from times, counts are right, and nothing is left out in silence."""

import pytest
import torch

from explorer import params
from explorer.errors import InputError, ResourceError
from explorer.labs import kernel_speed as module
from explorer.labs import kernel_speed_attention as attention
from explorer.labs import kernel_speed_case
from explorer.labs import kernel_speed_latent as latent
from explorer.labs import kernel_speed_writes as writes
from explorer.labs.base import LABS
from explorer.labs.kernel_speed_case import OURS, Shape
from explorer.labs.runner import Finished, run_lab
from explorer.measuring import memory
from explorer.measuring.timers import Contest, Timing

COPY_GB_PER_S = 12.5  # in place of a measured copy, so that shares can be worked out


@pytest.fixture
def quick(monkeypatch):
    """One layer, two small sizes; a copy is not measured."""
    monkeypatch.setattr(kernel_speed_case, "COLD_BYTES", 1)
    monkeypatch.setattr(module, "CONTEXTS", (512, 768))
    monkeypatch.setattr("explorer.labs.bench.Bench.copy_gb_per_s", lambda bench: COPY_GB_PER_S)


def record_of(**settings):
    lab = params.build(LABS["kernel-speed"], {"heads": "9/3/64", "batch": 1, "rounds": 3} | settings)
    for event in run_lab(lab, device="cpu"):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


@pytest.mark.parametrize("kernel", module.KINDS)
def test_every_kernel_runs_and_equals_its_rival(quick, kernel):
    record = record_of(kernel=kernel)
    lengths = [16] if kernel == "block-copy" else [512, 768]
    assert [(row["batch"], row["kv_len"]) for row in record.rows] == [(1, n) for n in lengths for _ in range(2)]
    ours, rival = record.rows[-2:]
    assert (
        ours["run"] == f"{OURS}, 1 × {lengths[-1]}"
        and ours["time_ratio"] is None
        and ours["max_abs_difference"] is None
    )
    assert rival["max_abs_difference"] < 0.1
    assert kernel not in ("kv-write", "block-copy") or rival["max_abs_difference"] == 0
    for row in record.rows:
        assert row["call_p20_ms"] <= row["call_ms"] <= row["call_p80_ms"]
        assert row["gb_per_s"] * row["call_ms"] * 1e6 == pytest.approx(row["moved_bytes"])
        assert row["share_of_copy"] * COPY_GB_PER_S == pytest.approx(row["gb_per_s"])
    facts = record.provenance
    assert facts["device_kind"] == "cpu" and "torch path for CPUs" in facts["implementation"]
    assert "FlashInfer: " in facts["absent"] and "flash-attn: " in facts["absent"]
    assert facts["implementation"].endswith(f"absent rivals: {facts['absent']}"), "the panel's line shows it"
    answers = LABS["kernel-speed"](kernel=kernel).answer(record.summary)
    assert f"{record.summary['gb_per_s']:,.1f} GB/s" in answers.en and f"1 × {lengths[-1]}" in answers.zh


def test_the_summary_is_the_largest_size_and_its_fastest_rival(quick):
    record = record_of(kernel="paged-decode")
    ours, rival = record.rows[2:]
    summary = record.summary
    assert (summary["share_of_copy"], summary["time_ratio"]) == (ours["share_of_copy"], rival["time_ratio"])
    assert summary["fastest_rival"] == "torch SDPA" and summary["kv_len"] == 768
    assert summary["copy_gb_per_s"] == pytest.approx(COPY_GB_PER_S)
    assert summary["share_of_copy_p20"] <= summary["share_of_copy"] <= summary["share_of_copy_p80"]


def test_a_call_is_a_layers_share_of_the_timed_piece(quick, monkeypatch):
    """Four layers take 8 s together in our hands and 12 s in the rival's: 2 s and 3 s a call."""
    monkeypatch.setattr(attention, "layers_for", lambda num_bytes: 4)

    def contest(bench, rivals, *, repeats):
        samples = {name: [8.0 if name == OURS else 12.0] for name in rivals}
        return Contest({name: Timing.of(seen, "a test's") for name, seen in samples.items()}, samples)

    monkeypatch.setattr("explorer.labs.bench.Bench.rivals", contest)
    ours, rival = record_of(kernel="paged-decode").rows[:2]
    assert (ours["call_ms"], rival["call_ms"], rival["time_ratio"]) == (2000.0, 3000.0, 1.5)
    assert ours["tflops_per_s"] == pytest.approx(4 * 9 * 64 * 512 / 2e12)


def test_a_wrong_kernel_is_seen(quick, monkeypatch):
    genuine = attention.paged_attention

    def late(q, *args, **how):
        found = genuine(q, *args, **how)
        return found._replace(out=found.out + 0.5)

    monkeypatch.setattr(attention, "paged_attention", late)
    assert record_of(kernel="paged-decode").summary["max_abs_difference"] > 0.4


def test_sizes_that_do_not_fit_are_named_and_the_share_is_not_that_of_another_size(quick, monkeypatch):
    kind = module.KINDS["paged-decode"]
    free = kind.need_bytes(module.KernelSpeed(heads="9/3/64").shapes()[0]) + 1
    monkeypatch.setattr(memory, "available_bytes", lambda device: free)
    record = record_of(kernel="paged-decode")
    assert {row["kv_len"] for row in record.rows} == {512}
    assert record.provenance["left_out"].startswith("1 × 768: needs ")
    assert record.summary["share_of_copy"] is None and record.summary["gb_per_s"] > 0
    monkeypatch.setattr(memory, "available_bytes", lambda device: 0)
    with pytest.raises(ResourceError, match="no size fits"):
        record_of(kernel="paged-decode")


def test_a_cpu_is_spared(quick, monkeypatch):
    monkeypatch.setattr(
        module, "MOST_CPU_FLOPS", attention.prefill_work(Shape(1, 512, 9, 3, 64, 16, torch.bfloat16)).flops
    )
    record = record_of(kernel="flash-prefill")
    assert record.provenance["left_out"] == "1 × 768: too much for a CPU"
    lab = module.KernelSpeed(kernel="paged-decode", batch=64, context=32768)
    assert 0 < lab.expected_seconds("cpu") < 600 and lab.expected_seconds("cuda") is None


def test_the_interpreter_is_refused_before_anything_is_made(quick, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(module, "memory", None)
    with pytest.raises(ResourceError, match="TRITON_INTERPRET"):
        record_of(kernel="paged-decode")


SHAPE = Shape(batch=2, kv_len=1024, num_heads=8, num_kv_heads=2, head_dim=16, block_size=16, dtype=torch.bfloat16)


def test_bytes_and_operations_by_hand():
    """A token's Keys and Values: 2 heads x 16 x 2 B, twice: 128 B. A score and its share of the sum: 4 x 16 FLOPs."""
    assert SHAPE.cache_bytes == 2 * 1024 * 128
    decode = attention.decode_work(SHAPE)
    assert decode.num_bytes == 2 * 1024 * 128 + 2 * 2 * 8 * 16 * 2 and decode.flops == 2 * 8 * 1024 * 64
    prompt = attention.prefill_work(SHAPE)
    assert prompt.flops == 2 * 8 * 64 * sum(range(1, 1025))
    assert prompt.num_bytes == 2 * 1024 * 128 + 2 * 2 * 1024 * 8 * 16 * 2
    chunk = attention.chunk_work(SHAPE)
    assert chunk.flops == 2 * 8 * 64 * sum(range(513, 1025)), "the 512 Queries see 513 to 1,024 Keys"
    rows = latent.work(SHAPE)
    assert rows.num_bytes == 2 * (1024 * 576 * 2 + 128 * (576 + 512) * 2)
    assert writes.write_work(SHAPE).num_bytes == 2 * (2 * 1024 * 128) + 8 * 2048
    block = Shape(2, 16, 8, 2, 16, 16, torch.bfloat16)
    assert writes.copy_work(block).num_bytes == 2 * 32 * 2 * 16 * 128, "2 blocks, 32 layers, read and written"


def test_small_caches_are_laid_out_until_a_pass_reads_memory():
    assert kernel_speed_case.layers_for(8 << 20) == 32
    assert kernel_speed_case.layers_for(1 << 40) == 1
    assert kernel_speed_case.layers_for(1) == kernel_speed_case.MOST_LAYERS
    layers = kernel_speed_case.spread_out(torch.ones(3), 2)
    assert layers[0].data_ptr() != layers[1].data_ptr()


def test_calls_take_the_layers_in_turn():
    seen = []
    case = kernel_speed_case.Case(attention.decode_work(SHAPE), 3, {OURS: seen.append})
    case.piece(OURS, torch.device("cpu"))()
    assert seen == [0, 1, 2] and case.count(torch.device("cpu")) == 3
    case.piece(OURS, torch.device("cuda"))()
    assert seen[3:] == [0, 1, 2, 0, 1, 2, 0, 1] and case.count(torch.device("cuda")) == kernel_speed_case.GPU_CALLS


def test_the_sizes():
    lab = params.build(LABS["kernel-speed"], {"batch": 64, "context": 8192})
    assert [str(shape) for shape in lab.shapes()] == [
        "1 × 2,048", "1 × 8,192", "8 × 2,048", "8 × 8,192", "64 × 2,048", "64 × 8,192",
    ]  # fmt: skip
    prompt = params.build(LABS["kernel-speed"], {"batch": 64, "kernel": "flash-prefill"})
    assert [str(shape) for shape in prompt.shapes()] == ["1 × 2,048"]
    for settings in ({"kernel": "none"}, {"batch": 2}, {"context": 100}, {"heads": "1/1/1"}, {"dtype": "fp32"}):
        with pytest.raises(InputError):
            params.build(LABS["kernel-speed"], settings)
