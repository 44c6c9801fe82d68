"""The lab heads: bytes by hand, results against references, a contest that really reads memory, and its ends."""

import random
import threading

import pytest
import torch

from explorer import params
from explorer.errors import InputError, ResourceError, Stopped
from explorer.estimators import roofline
from explorer.labs import _heads_cases, heads
from explorer.labs._heads_cases import Pool, Step, latent, shared_heads
from explorer.labs.base import LABS
from explorer.labs.bench import Bench
from explorer.labs.runner import Finished, run_lab
from explorer.measuring import last_cache, memory
from explorer.measuring.timers import Timing

CPU = torch.device("cpu")
SMALL = {"num_heads": 8, "kv_len": 256, "head_dim": 64, "rounds": 3}
NAMES = ["1 (MQA)", "2 (GQA)", "4 (GQA)", "8 (MHA)", "MLA"]


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """The pool is laid out for a processor with a cache of 1 MiB."""
    monkeypatch.setattr(heads, "last_cache_bytes", lambda device: 1 << 20)


def record_of(**settings):
    for event in run_lab(params.build(LABS["heads"], SMALL | settings), device="cpu"):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


@pytest.fixture(scope="module")
def record():
    patch = pytest.MonkeyPatch()
    patch.setattr(heads, "last_cache_bytes", lambda device: 1 << 20)
    yield record_of(batch=2)
    patch.undo()


def test_bytes_and_operations_by_hand(record):
    """2 sequences of 256 tokens; a head keeps 2 x 64 numbers of 2 bytes a token, MLA 576 for all heads."""
    assert [row["kv_heads"] for row in record.rows] == NAMES
    assert [row["stored_bytes"] for row in record.rows] == [131_072, 262_144, 524_288, 1_048_576, 589_824]
    assert [row["flops"] for row in record.rows] == [2 * 4 * 8 * 64 * 256] * 4 + [2 * 2 * 8 * 256 * (576 + 512)]
    works = [roofline.grouped_attention(8, heads_, 64, 256, 2) for heads_ in (1, 2, 4, 8)]
    works.append(roofline.latent_attention(8, 512, 64, 256, 2))
    assert [row["intensity"] for row in record.rows] == [float(work.intensity) for work in works]


def test_rates_and_the_bound_follow_from_the_times(record):
    copy, peak = record.provenance["copy_gb_per_s"] * 1e9, record.provenance["peak_gflops"] * 1e9
    for row in record.rows:
        assert row["step_p20_ms"] <= row["step_ms"] <= row["step_p80_ms"]
        assert row["gb_per_s"] * row["step_ms"] * 1e6 == pytest.approx(row["stored_bytes"])
        assert row["copy_fraction"] * copy == pytest.approx(row["gb_per_s"] * 1e9, rel=0.01)
        moved = row["flops"] / row["intensity"]
        assert row["bound_ms"] == pytest.approx(1e3 * max(row["flops"] / peak, moved / copy), rel=0.01)
        assert row["over_bound"] == pytest.approx(row["step_ms"] / row["bound_ms"])
    assert record.rows[0]["time_ratio"] == 1
    assert record.provenance["repeats"] == "5, 3" and "grouped_attention" in record.provenance["implementation"]


def test_the_summary_and_the_answer(record):
    summary, rows = record.summary, record.rows
    assert summary["kv_heads"] == [1, 2, 4, 8] and summary["bytes"] == [row["stored_bytes"] for row in rows[:-1]]
    assert summary["ms"] == [row["step_ms"] for row in rows[:-1]] and summary["mla_ms"] == rows[-1]["step_ms"]
    assert summary["bytes_ratio_mha_to_mqa"] == 8 and summary["bytes_ratio_mla_to_mqa"] == 4.5
    assert summary["time_ratio_mha_to_mqa"] == rows[3]["time_ratio"] > 0
    assert summary["max_abs_difference"] == max(row["max_abs_difference"] for row in rows)
    assert summary["time_ratio_mla_to_mqa_p20"] <= summary["time_ratio_mla_to_mqa"]
    assert summary["spread"] == max(row["step_p80_ms"] / row["step_p20_ms"] for row in rows) >= 1
    times = {"time_ratio_mha_to_mqa": 3.21, "time_ratio_mha_to_mqa_p20": 3.04, "time_ratio_mha_to_mqa_p80": 3.5}
    times |= {"time_ratio_mla_to_mqa": 2.04, "time_ratio_mla_to_mqa_p20": 1.9, "time_ratio_mla_to_mqa_p80": 2.2}
    answer = LABS["heads"]().answer(summary | times | {"spread": 1.99})
    assert "8.0 times the bytes and takes 3.2 times as long (3.0 to 3.5)" in answer.en
    assert "4.50 times the bytes and takes 2.0 times as long (1.9 to 2.2)" in answer.en and "unsteady" not in answer.en
    assert "耗时是 3.2 倍（3.0 到 3.5）" in answer.zh and "4.50 倍，耗时是 2.0 倍（1.9 到 2.2）" in answer.zh
    doubtful = LABS["heads"]().answer(summary | times | {"spread": 2.5})
    assert "2.5 times the 20th" in doubtful.en and "2.5 倍" in doubtful.zh


def test_the_size_of_the_results(record):
    """The average of 256 Values of size 1, weighted by about exp(N(0, 1)): root mean square about sqrt(e / 256) = 0.10.

    MLA's scores are wider, 576 products over the root of 192: its weights gather on fewer tokens.
    """
    *shared, mla = [row["result_rms"] for row in record.rows]
    assert all(0.08 < rms < 0.14 for rms in shared), shared
    assert 0.14 < mla < 0.6


@pytest.mark.parametrize(("dtype", "limit"), [("fp32", 1e-5), ("bf16", 0.03)])
def test_every_row_agrees_with_its_reference(dtype, limit):
    differences = [row["max_abs_difference"] for row in record_of(dtype=dtype, batch=2).rows]
    assert all(0 < difference < limit for difference in differences), differences


@pytest.mark.parametrize("num_kv_heads", [1, 4, 8])
def test_the_paged_kernel_is_read_by_its_block_table(num_kv_heads):
    """What runs on a GPU, here by its CPU path: blocks in any order, three sequences."""
    step = Step(3, 192, 8, 64, torch.float32, CPU)
    case = shared_heads(step, num_kv_heads, Pool(4 * step.kv_bytes(8), step, lambda: None), paged=True)
    assert case.difference() < 1e-5
    assert case.stored_bytes == 2 * 3 * num_kv_heads * 192 * 64 * 4 == step.kv_bytes(num_kv_heads)
    assert case.attend().shape == (3, 8, 64)


@pytest.mark.parametrize("name", ["decode_attention", "mla_decode"])
@pytest.mark.parametrize("fault", [lambda out: out * 1.05, lambda out: out.flip(1)], ids=["scaled", "heads reversed"])
def test_a_wrong_result_is_seen(monkeypatch, name, fault):
    right = getattr(_heads_cases, name)
    monkeypatch.setattr(_heads_cases, name, lambda *args, **more: fault(right(*args, **more)))
    differences = [row["max_abs_difference"] for row in record_of(dtype="fp32").rows]
    wrong = differences[-1:] if name == "mla_decode" else differences[:-1]
    assert min(wrong) > 1e-3


def test_every_call_reads_what_was_read_longest_ago():
    """In any order of calls, at least the processor's cache is read between two uses of the same memory."""
    lab = LABS["heads"](num_heads=8, kv_len=256, head_dim=64)
    step = Step(1, 256, 8, 64, torch.bfloat16, CPU)
    bench = Bench(CPU)
    pool = heads._pool(bench, step)
    assert lab.kv_len == step.kv_len and "1 MiB" in bench.notes["last_level_cache"]
    sizes = [(8, 256, 64), (8, 256, 64), (256, 576), (1, 256, 64), (2, 256, 64), (4, 256, 64)]
    rng, read, log = random.Random(3), 0, []
    for _ in range(300):
        part = pool.take(*rng.choice(sizes))
        start = part.data_ptr() - pool.all.data_ptr()
        stop = start + part.nbytes
        before = [end for a, b, end in log if a < stop and start < b]
        assert not before or read - max(before) >= 1 << 20
        read += part.nbytes
        log.append((start, stop, read))
    assert read > 3 * pool.all.nbytes


def test_no_two_heads_hold_the_same_keys():
    step = Step(1, 256, 8, 64, torch.bfloat16, CPU)
    pool = Pool(40 << 20, step, lambda: None)
    parts = pool.all[: 1_200 * 16_384].view(1_200, 256, 64)
    assert len({tuple(part[0, :6].tolist()) for part in parts}) == 1_200


def test_it_stops_between_two_calls(monkeypatch):
    stop, calls = threading.Event(), []
    right = _heads_cases.mla_decode

    def pressed(*args, **more):
        calls.append(1)
        if len(calls) == 5:  # sized and checked once, two rounds of warm-up, then in the middle of the first round
            stop.set()
        return right(*args, **more)

    monkeypatch.setattr(_heads_cases, "mla_decode", pressed)
    events = run_lab(params.build(LABS["heads"], SMALL | {"rounds": 61}), device="cpu", stop=stop)
    with pytest.raises(Stopped):
        list(events)
    assert len(calls) == 5


def test_too_little_memory_is_said_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda device: 1 << 20)
    monkeypatch.setattr(heads, "Pool", lambda *_: pytest.fail("allocated"))
    with pytest.raises(ResourceError, match="the pool of caches needs"):
        record_of()


@pytest.mark.parametrize(
    "settings", [{"num_heads": 12}, {"kv_len": 300}, {"batch": 0}, {"head_dim": 96}, {"rounds": 2}, {"dtype": "fp8"}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match="expected"):
        params.build(LABS["heads"], settings)


def test_defaults_are_expected_to_be_quick_and_large_ones_not():
    assert LABS["heads"]().expected_seconds("cpu") < 30
    assert LABS["heads"](num_heads=128, kv_len=32_768, batch=8).expected_seconds("cpu") > 60
    assert LABS["heads"]().expected_seconds("cuda") is None


def caches(folder, cpu, *entries):
    for i, (level, size, shared) in enumerate(entries):
        place = folder / f"cpu{cpu}" / "cache" / f"index{i}"
        place.mkdir(parents=True)
        for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared)):
            (place / name).write_text(f"{text}\n")


def test_the_last_caches_of_all_usable_processors(monkeypatch, tmp_path):
    """Two processors with a third-level cache in common, and one with its own."""
    monkeypatch.setattr(last_cache, "CPUS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 5}, raising=False)
    assert last_cache.last_cache_bytes(CPU) is None
    caches(tmp_path, 0, ("1", "48K", "0"), ("3", "32M", "0-1"))
    caches(tmp_path, 1, ("1", "48K", "1"), ("3", "32M", "0-1"))
    caches(tmp_path, 5, ("2", "2048K", "5"), ("3", "32M", "4-5"), ("3", "odd", "5"), ("3", "12X", "5"))
    assert last_cache.last_cache_bytes(CPU) == 64 << 20


def test_a_cache_that_is_not_told_is_said_to_be_assumed(monkeypatch):
    monkeypatch.setattr(heads, "last_cache_bytes", lambda device: None)
    monkeypatch.setattr(heads, "ASSUMED_CACHE", 2 << 20)
    bench = Bench(CPU)
    heads._pool(bench, Step(1, 256, 8, 64, torch.bfloat16, CPU))
    assert bench.notes["last_level_cache"] == "2 MiB (assumed)" and "pool of 3 MiB" in bench.notes["read_from"]


def test_blocks_lie_anywhere():
    table = _heads_cases._table(Step(2, 640, 8, 64, torch.float32, CPU))
    assert table.shape == (2, 10) and sorted(table.flatten().tolist()) == list(range(20)) != table.flatten().tolist()


def test_the_flat_roof_is_the_better_of_two_products(monkeypatch):
    """Half a second for the small one, two for the large one, eight times as many operations."""
    seconds = iter((0.5, 2.0))
    monkeypatch.setattr(Bench, "time", lambda *_, **__: Timing.of([next(seconds)], "perf_counter"))
    assert heads._peak_flops(Bench(CPU), torch.float32) == 2 * 1_024**3 / 2.0 == 2 * (2 * 512**3 / 0.5)


def test_mla_is_one_piece_for_all_heads():
    step = Step(2, 128, 16, 128, torch.float32, CPU)
    case = latent(step, Pool(3 * step.latent_bytes(), step, lambda: None))
    assert case.stored_bytes == 2 * 128 * 576 * 4 == step.latent_bytes()
    assert case.attend().shape == (2, 16, 512) and case.difference() < 1e-5
