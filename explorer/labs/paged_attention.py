"""One decode step's attention on pages against the same on contiguous rows, as the context doubles."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any, ClassVar

import torch
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.measuring.timers import Contest, Timing
from explorer.params import param
from explorer.text import Text

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
SHORTEST = 256
# The shape of SmolLM2-135M: 30 layers, so that the cache is larger than what a processor keeps close.
SHAPE = {
    "model_type": "llama", "num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9,
    "num_key_value_heads": 3, "head_dim": 64, "intermediate_size": 1536, "vocab_size": 49152, "rms_norm_eps": 1e-5,
    "rope_theta": 1e5, "max_position_embeddings": 32768,
}  # fmt: skip
WAYS = ("contiguous", "paged", "scattered")
PLACEMENTS = 8
ORDERS = (WAYS, ("paged", "contiguous", "scattered"), ("scattered", "contiguous", "paged"), WAYS[::-1])
MAX_RUN = 2048  # slots of neighbouring blocks that the pool hands out together, at most

Store = ContiguousStore | PagedStore


@dataclass(frozen=True)
class _Trial:
    """One placement of the stores in memory, measured."""

    contest: Contest
    difference: float
    stored_bytes: dict[str, int]
    implementation: str


@LABS.register
@dataclass(frozen=True)
class PagedAttention(Lab):
    """Attention of one decode step in all layers, writing the new tokens and planning the step included."""

    name: ClassVar[str] = "paged-attention"
    page: ClassVar[str] = "paged-attention"
    title: ClassVar[Text] = Text("What does paging cost in time?", "分页会慢多少？")
    question: ClassVar[Text] = Text(
        "How much longer does attention take when Keys and Values lie in blocks instead of one piece?",
        "Key 与 Value 分散在各个块里，而不是连成一片时，attention 会慢多少？",
    )
    expect: ClassVar[Text] = Text(
        "Close to 1 at long contexts: both ways read the same bytes. Paging adds look-ups in the block table and, once "
        "a step, a plan of which slots to read; short contexts feel that more. Two placements are measured. Paged: the "
        "pool hands out neighbouring blocks while it has them, in runs of up to 2,048 tokens; the runs of all requests "
        "lie in random order. Scattered: every block lies anywhere. A CPU pays a fixed time for each piece that it "
        "multiplies, so many small scattered blocks cost a third to a half more; the engine's own pool (runs of up "
        "to 512 tokens) lies between. Both rivals get their best case: rows exactly as long as the context, runs "
        "that divide it. The shape is SmolLM2-135M's, 30 layers, filled with random numbers. Where memory happens to "
        "lie moves a time by up to a tenth, so everything is built eight times, in changing order: the ratio is the "
        "geometric mean of eight medians, its spread that of all rounds.",
        "上下文较长时接近 1：两种方式读的字节一样多，分页只多了查表和每步的读取计划，上下文越短越明显。这里测两种排布"
        "。“分页”：块池尽量给同一请求相邻的块，一段最长 2,048 个 token，各请求的段随机排列。“打散”：每个"
        "块可以在任何位置。CPU 每做一次小矩阵乘都有固定开销，所以大量零散的小块要多花三到五成时间；引擎自己"
        "的池（一段最长 512 个 token）介于两者之间。双方都取最有利的情形：连续行恰好与上下文等长，段恰好能分完上下文"
        "。形状取自 SmolLM2-135M，30 层，填入随机数。内存落在哪里会让耗时相差最多一成，因此按不同次序全部重建八次：比"
        "值取八个中位数的几何平均，离散程度取自所有轮次。",
    )
    source: ClassVar[str] = "Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 4.3 and figure 18"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("kv_len", "tokens", Origin.COMPUTED),
        *(
            Column(f"{way}_{name}", "ms", Origin.MEASURED)
            for way in WAYS
            for name in ("ms", "p20_ms", "p80_ms")
        ),
        Column("time_ratio", "x", Origin.MEASURED),
        Column("time_ratio_p20", "x", Origin.MEASURED),
        Column("time_ratio_p80", "x", Origin.MEASURED),
        Column("scattered_ratio", "x", Origin.MEASURED),
        Column("max_abs_difference", "", Origin.MEASURED),
        Column("read_bytes", "bytes", Origin.COMPUTED),
        Column("contiguous_bytes", "bytes", Origin.MEASURED),
        Column("paged_bytes", "bytes", Origin.MEASURED),
        Column("contiguous_gb_per_s", "GB/s", Origin.MEASURED),
        Column("paged_gb_per_s", "GB/s", Origin.MEASURED),
        Column("copy_share", "", Origin.MEASURED),
    )  # fmt: skip
    column_titles: ClassVar[dict[str, Text]] = {
        "kv_len": Text("Context", "上下文"),
        "contiguous_ms": Text("Contiguous", "连续"),
        "contiguous_p20_ms": Text("p20", "p20"),
        "contiguous_p80_ms": Text("p80", "p80"),
        "paged_ms": Text("Paged", "分页"),
        "paged_p20_ms": Text("p20", "p20"),
        "paged_p80_ms": Text("p80", "p80"),
        "scattered_ms": Text("Scattered", "打散"),
        "scattered_p20_ms": Text("p20", "p20"),
        "scattered_p80_ms": Text("p80", "p80"),
        "time_ratio": Text("Paged / contiguous", "分页 / 连续"),
        "time_ratio_p20": Text("p20", "p20"),
        "time_ratio_p80": Text("p80", "p80"),
        "scattered_ratio": Text("Scattered / contiguous", "打散 / 连续"),
        "max_abs_difference": Text("Largest difference", "最大差异"),
        "read_bytes": Text("K and V to read", "须读的 K 与 V"),
        "contiguous_bytes": Text("Held, contiguous", "占用（连续）"),
        "paged_bytes": Text("Held, paged", "占用（分页）"),
        "contiguous_gb_per_s": Text("Contiguous", "连续"),
        "paged_gb_per_s": Text("Paged", "分页"),
        "copy_share": Text("Paged / copy speed", "分页 / 复制速度"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="kv_len",
        y=tuple(f"{way}_ms" for way in WAYS),
        log_x=True,
        log_y=True,
        low={f"{way}_ms": f"{way}_p20_ms" for way in WAYS},
        high={f"{way}_ms": f"{way}_p80_ms" for way in WAYS},
    )
    needs_model: ClassVar[bool] = False

    kv_len: int = param(2048, Text("Longest context", "最长上下文"), minimum=16, maximum=8192, step=1, unit="tokens")
    batch: int = param(8, Text("Requests", "请求数"), minimum=1, maximum=32, step=1)
    block_size: int = param(16, Text("Block size", "块大小"), choices=(8, 16, 32, 64, 128, 256), unit="tokens")
    rounds: int = param(15, Text("Rounds", "轮数"), minimum=3, maximum=61, step=2)
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=("bf16", "fp32"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each context, doubling up to `kv_len`."""
        contexts = [n for n in (SHORTEST << i for i in range(6)) if n < self.kv_len] + [self.kv_len]
        config = ModelConfig.from_hf(SHAPE, "SmolLM2-135M's shape")
        # Before the short contexts are measured: what cannot be finished is refused at once.
        bench.need_bytes(5 * self._read_bytes(config, self.kv_len), Text("the caches", "缓存"))
        for done, kv_len in enumerate(contexts):
            yield Progress(done, len(contexts), Text(f"{kv_len:,} tokens", f"{kv_len:,} 个 token"))
            bench.check()
            yield self._row(bench, config, kv_len)

    def _read_bytes(self, config: ModelConfig, kv_len: int) -> int:
        """Keys and Values of all requests."""
        return self.batch * kv_len * config.cache_bytes_per_token(DTYPES[self.dtype].itemsize)

    def _row(self, bench: Bench, config: ModelConfig, kv_len: int) -> Row:
        read_bytes = self._read_bytes(config, kv_len)
        bench.need_bytes(5 * read_bytes, Text("the caches", "缓存"))
        trials = [self._trial(bench, config, kv_len, ORDERS[i % len(ORDERS)]) for i in range(PLACEMENTS)]
        contest = _joined([trial.contest for trial in trials])
        copy, ratio = bench.copy_gb_per_s(), contest.ratio("paged", "contiguous")
        gb_per_s = {way: read_bytes / contest.timings[way].median_s / 1e9 for way in WAYS}
        bench.note(
            dtype=self.dtype,
            implementation=trials[0].implementation,
            longest_run=run_length(kv_len, self.block_size),
            placements=PLACEMENTS,
            repeats=contest.timings["paged"].repeats,  # of all placements
            counted="one decode step of all layers: new tokens written, step planned, attention",
        )
        return _times(contest) | {
            "kv_len": kv_len,
            "time_ratio": _mean_ratio(trials, "paged"),
            "time_ratio_p20": ratio.p20,
            "time_ratio_p80": ratio.p80,
            "scattered_ratio": _mean_ratio(trials, "scattered"),
            "max_abs_difference": max(trial.difference for trial in trials),
            "read_bytes": read_bytes,
            "contiguous_bytes": trials[0].stored_bytes["contiguous"],
            "paged_bytes": trials[0].stored_bytes["paged"],
            "contiguous_gb_per_s": gb_per_s["contiguous"],
            "paged_gb_per_s": gb_per_s["paged"],
            "copy_share": gb_per_s["paged"] / copy,
        }

    def _trial(self, bench: Bench, config: ModelConfig, kv_len: int, order: Sequence[str]) -> "_Trial":
        """Build all rivals anew, in this order, and time some rounds.

        Where memory lies moves a time by some percent, and what is built later tends to lie otherwise.
        """
        stores: dict[str, Store] = {}
        for way in order:
            bench.check()
            stores[way] = self._store(bench, config, kv_len, way)
        steps = {way: _step(config, stores[way], self.batch, kv_len, DTYPES[self.dtype]) for way in order}
        answers = {way: step() for way, step in steps.items()}
        return _Trial(
            contest=bench.rivals(steps, warmup=1, repeats=-(-self.rounds // PLACEMENTS)),
            difference=max((answers[way] - answers["contiguous"]).abs().max().item() for way in WAYS[1:]),
            stored_bytes={way: store.stored_bytes for way, store in stores.items()},
            implementation="; ".join(stores[way].implementation for way in WAYS[:2]),
        )

    def _store(self, bench: Bench, config: ModelConfig, kv_len: int, way: str) -> Store:
        """One of the rivals, empty."""
        dtype, run, dice = DTYPES[self.dtype], run_length(kv_len, self.block_size), random.Random(kv_len)
        if way == "contiguous":
            return ContiguousStore(config, dtype, bench.device, capacity=kv_len, batch=self.batch)
        blocks = self.batch * -(-kv_len // run) * (run // self.block_size)
        together = run if way == "paged" else self.block_size
        store = PagedStore(config, dtype, bench.device, blocks, self.block_size, together)
        pieces = together // self.block_size
        runs = [list(range(first, first + pieces)) for first in range(0, blocks, pieces)]
        dice.shuffle(runs)
        # The next block given out is the list's last.
        store.pool.free_blocks = [block for each in runs for block in reversed(each)]
        return store

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The longest context's ratios."""
        last = rows[-1]
        names = (
            "kv_len", "time_ratio", "time_ratio_p20", "time_ratio_p80", "scattered_ratio", "read_bytes", "paged_bytes",
            "contiguous_bytes", "copy_share",
        )  # fmt: skip
        return {name: last[name] for name in names} | {
            "max_abs_difference": max(row["max_abs_difference"] for row in rows)
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Both ratios at the longest context."""
        at, ratio = f"{summary['kv_len']:,}", f"{summary['time_ratio']:.2f}"
        scattered, batch = f"{summary['scattered_ratio']:.2f}", self.batch
        size = self.block_size
        return Text(
            f"At {at} tokens ({batch} at a time, blocks of {size}) pages take {ratio} times as long as rows in one "
            f"piece; with every block anywhere, {scattered} times.",
            f"上下文 {at} 个 token（同时 {batch} 个请求，块大小 {size}）时，分页耗时是连续存放的 {ratio} 倍；"
            f"若每个块都随意分散，则为 {scattered} 倍。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Filling the caches, and rounds of three ways at 8 GB/s; all rows cost as much as the last one twice."""
        per_step = self.batch * self.kv_len * 23_040 * (DTYPES[self.dtype].itemsize / 2)
        return 2 + 2 * (self.rounds + 3) * 4.2 * per_step / 8e9 + 6 * per_step / 0.4e9 if bench_kind == "cpu" else None


def run_length(kv_len: int, block_size: int) -> int:
    """Slots of the runs of neighbouring blocks that the pool hands out: equal parts of the context, up to `MAX_RUN`."""
    blocks = -(-kv_len // block_size)
    return -(-blocks // -(-blocks * block_size // max(MAX_RUN, block_size))) * block_size


def _step(config: ModelConfig, store: Store, batch: int, kv_len: int, dtype: torch.dtype) -> Callable[[], Tensor]:
    """Fill a store, the same for each, and return one decode step of all layers, undone afterwards."""
    generator, seqs = torch.Generator().manual_seed(kv_len), list(range(batch))

    def randn(tokens: int, heads: int) -> Tensor:
        return torch.randn(tokens, heads, config.head_dim, generator=generator).to(store.device, dtype)

    one = {seq: (randn(kv_len - 1, config.num_kv_heads), randn(kv_len - 1, config.num_kv_heads)) for seq in seqs}
    for seq, (k, v) in one.items():
        filling = store.begin([seq], [kv_len - 1])
        for layer in range(config.num_layers):
            store.write(layer, k, v, filling)
    q, k, v = (randn(batch, heads) for heads in (config.num_heads, config.num_kv_heads, config.num_kv_heads))

    def step() -> Tensor:
        now = store.begin(seqs, [1] * batch)
        for layer in range(config.num_layers):
            out = store.attend(layer, q, k, v, now)
        for seq in seqs:
            store.truncate(seq, kv_len - 1)
        return out

    return step


def _mean_ratio(trials: list[_Trial], way: str) -> float:
    """Over all placements, the geometric mean of the median ratio to contiguous rows."""
    return geometric_mean(trial.contest.ratio(way, "contiguous").median for trial in trials)


def _joined(contests: list[Contest]) -> Contest:
    """All rounds of several contests of the same rivals."""
    samples = {way: [s for contest in contests for s in contest.samples[way]] for way in WAYS}
    clock = contests[0].timings[WAYS[0]].clock
    return Contest({way: Timing.of(seconds, clock) for way, seconds in samples.items()}, samples)


def _times(contest: Contest) -> Row:
    row: Row = {}
    for way, timing in contest.timings.items():
        row |= {f"{way}_ms": timing.median_s * 1e3, f"{way}_p20_ms": timing.p20_s * 1e3}
        row |= {f"{way}_p80_ms": timing.p80_s * 1e3}
    return row
