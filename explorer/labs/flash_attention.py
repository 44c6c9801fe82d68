"""What the scores cost: attention that stores them all against attention that never does."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring import memory
from explorer.measuring.record import Column, Origin, Row
from explorer.measuring.timers import Timing
from explorer.params import param
from explorer.text import Text
from kernels.flash_attention import flash_attention

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
SHORTEST = 512
SLOPE_ROWS = 3  # the slope is taken over the longest lengths, where constant parts no longer count


@LABS.register
@dataclass(frozen=True)
class FlashAttention(Lab):
    """Time and peak memory of both as the sequence doubles; flash goes on where the other must stop."""

    name: ClassVar[str] = "flash-attention"
    page: ClassVar[str] = "flash-attention"
    title: ClassVar[Text] = Text("Attention without its scores", "不保存分数矩阵的 attention")
    question: ClassVar[Text] = Text(
        "When a prompt doubles, how do the time and the peak memory of attention grow, with and without storing the "
        "scores?",
        "prompt 长度翻倍时，保存与不保存分数矩阵的 attention，其耗时和峰值内存分别如何增长？",
    )
    expect: ClassVar[Text] = Text(
        "Stored scores take N × N numbers a head: double the prompt, and memory grows nearly fourfold (power 2). Flash "
        "keeps one tile and three running values, so only Q, K, V and the output grow (power 1). Both do the same "
        "arithmetic, except for the causal half that flash skips, so time is quadratic for both: flash saves memory "
        "and its traffic, not the N × N products. The results are equal up to rounding.",
        "保存分数时，每个 head 要存 N × N 个数：prompt 翻倍，内存接近四倍（2 次方）。flash 只保留一个 "
        "tile 和三个滚动值，增长的只有 Q、K、V 和输出（1 次方）。除了 flash 跳过的那一半因果 mask 区域，"
        "两者的计算量相同，所以耗时都是平方级：flash 省下的是内存及其读写，不是 N × N 的乘法。"
        "两者的结果在舍入误差内相等。",
    )
    source: ClassVar[str] = "Dao et al. 2022, arXiv:2205.14135; Dao 2023, arXiv:2307.08691"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("seq_len", "tokens", Origin.COMPUTED),
        Column("scores_bytes", "bytes", Origin.COMPUTED),
        Column("naive_peak_bytes", "bytes", Origin.MEASURED),
        Column("flash_peak_bytes", "bytes", Origin.MEASURED),
        Column("naive_ms", "ms", Origin.MEASURED),
        Column("naive_p20_ms", "ms", Origin.MEASURED),
        Column("naive_p80_ms", "ms", Origin.MEASURED),
        Column("flash_ms", "ms", Origin.MEASURED),
        Column("flash_p20_ms", "ms", Origin.MEASURED),
        Column("flash_p80_ms", "ms", Origin.MEASURED),
        Column("time_ratio", "x", Origin.MEASURED),
        Column("max_abs_difference", "", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "seq_len": Text("Prompt length N", "prompt 长度 N"),
        "scores_bytes": Text("N × N scores, all heads", "N × N 分数矩阵（所有 head）"),
        "naive_peak_bytes": Text("Peak, scores stored", "峰值（保存分数）"),
        "flash_peak_bytes": Text("Peak, flash", "峰值（flash）"),
        "naive_ms": Text("Time, scores stored", "耗时（保存分数）"),
        "naive_p20_ms": Text("p20", "p20"),
        "naive_p80_ms": Text("p80", "p80"),
        "flash_ms": Text("Time, flash", "耗时（flash）"),
        "flash_p20_ms": Text("p20", "p20"),
        "flash_p80_ms": Text("p80", "p80"),
        "time_ratio": Text("Stored / flash", "保存分数 / flash"),
        "max_abs_difference": Text("Largest difference of the outputs", "输出的最大差值"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="seq_len", y=("naive_peak_bytes", "flash_peak_bytes"), log_x=True, log_y=True
    )
    needs_model: ClassVar[bool] = False

    max_len: int = param(
        16384,
        Text("Longest prompt, in tokens", "prompt 最大长度（token 数）"),
        choices=(4096, 8192, 16384, 32768),
        unit="tokens",
        help=Text(
            "For flash. With stored scores only up to a quarter of it.",
            "flash 测到这个长度；保存分数的只测到四分之一。",
        ),
    )
    num_heads: int = param(4, Text("Heads", "head 数"), minimum=1, maximum=16, step=1)
    head_dim: int = param(128, Text("Head dimension", "head 维度"), choices=(64, 128))
    rounds: int = param(3, Text("Rounds", "轮数"), minimum=1, maximum=15, step=2)
    dtype: str = param("fp32", Text("Element type", "元素类型"), choices=("fp32", "bf16"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each length, doubling; the longest two have flash alone."""
        lengths = [SHORTEST << i for i in range((self.max_len // SHORTEST).bit_length())]
        bench.note(
            dtype=self.dtype,
            implementation=f"scores stored: torch matmul and softmax; flash: {_flash_name(bench)}",
            counted="peak of Q, K, V, output and everything between, as the allocator hands it out",
        )
        for done, seq_len in enumerate(lengths):
            yield Progress(done, len(lengths), Text(f"{seq_len:,} tokens", f"{seq_len:,} 个 token"))
            bench.check()
            yield self._row(bench, seq_len, with_naive=4 * seq_len <= self.max_len)

    def _row(self, bench: Bench, seq_len: int, with_naive: bool) -> Row:
        make, flash = self._inputs(bench, seq_len), self._flash(bench, seq_len)
        scores_bytes = self.num_heads * seq_len**2 * DTYPES[self.dtype].itemsize
        bench.need_bytes(
            8 * self._tensor_bytes(seq_len) + 3 * with_naive * scores_bytes, Text("attention", "attention")
        )
        row: Row = {column.name: None for column in self.columns} | {"seq_len": seq_len, "scores_bytes": scores_bytes}
        row["flash_peak_bytes"] = self._peak(bench, make, flash)
        inputs = make()
        if not with_naive:
            row |= _times("flash", bench.time(lambda: flash(*inputs), warmup=0, repeats=self.rounds))
            return row
        row["naive_peak_bytes"] = self._peak(bench, make, naive_attention)
        row["max_abs_difference"] = (naive_attention(*inputs) - flash(*inputs)).abs().max().item()
        rivals: dict[str, Callable[[], Any]] = {
            "naive": lambda: naive_attention(*inputs),
            "flash": lambda: flash(*inputs),
        }
        contest = bench.rivals(rivals, repeats=self.rounds)
        row |= _times("naive", contest.timings["naive"]) | _times("flash", contest.timings["flash"])
        row["time_ratio"] = contest.ratio("naive", "flash").median
        return row

    def _tensor_bytes(self, seq_len: int) -> int:
        return seq_len * self.num_heads * self.head_dim * DTYPES[self.dtype].itemsize

    def _inputs(self, bench: Bench, seq_len: int) -> Callable[[], list[Tensor]]:
        def make() -> list[Tensor]:
            generator = torch.Generator(bench.device).manual_seed(seq_len)
            shape, dtype = (seq_len, self.num_heads, self.head_dim), DTYPES[self.dtype]
            return [torch.randn(shape, generator=generator, dtype=dtype, device=bench.device) for _ in range(3)]

        return make

    def _flash(self, bench: Bench, seq_len: int) -> Callable[..., Tensor]:
        cu_seqlens = torch.tensor([0, seq_len], dtype=torch.int32, device=bench.device)

        def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            out = flash_attention(q, k, v, cu_seqlens, max_q_len=seq_len)
            assert isinstance(out, Tensor)
            return out

        return flash

    def _peak(self, bench: Bench, make: Callable[[], list[Tensor]], attend: Callable[..., Tensor]) -> int:
        bench.check()
        out, reading = memory.allocator_delta(lambda: attend(*make()), bench.device)
        del out
        bench.note(allocator=reading.source)
        return reading.peak_bytes

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """Slopes of log memory and log time against log length over each one's three longest, and the agreement."""
        both = [row for row in rows if row["naive_peak_bytes"] is not None]
        naive, flash = (_slope(found, f"{name}_peak_bytes") for name, found in (("naive", both), ("flash", rows)))
        return {
            "peak_memory_slope": {"flash": flash, "naive": naive},
            "flash_peak_memory_slope": flash,
            "naive_peak_memory_slope": naive,
            "flash_time_slope": _slope(rows, "flash_ms"),
            "naive_time_slope": _slope(both, "naive_ms"),
            "max_abs_difference": max(row["max_abs_difference"] for row in both),
            "compared_at": both[-1]["seq_len"],
            "time_ratio": both[-1]["time_ratio"],
            "peak_memory_ratio": both[-1]["naive_peak_bytes"] / both[-1]["flash_peak_bytes"],
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """All four slopes, and what storing the scores costs at the longest length where both ran."""
        memory_naive, memory_flash, time_naive, time_flash = (
            f"{summary[f'{way}_{what}_slope']:.2f}" for what in ("peak_memory", "time") for way in ("naive", "flash")
        )
        at, more, longer = f"{summary['compared_at']:,}", summary["peak_memory_ratio"], summary["time_ratio"]
        return Text(
            f"With stored scores, peak memory grows with the power {memory_naive} of the length and time with "
            f"{time_naive}; with flash, {memory_flash} and {time_flash}. At {at} tokens storing them takes {more:.1f} "
            f"times flash's memory and {longer:.1f} times its time.",
            f"保存分数时，峰值内存随长度的 {memory_naive} 次方增长，耗时是 {time_naive} 次方；"
            f"flash 分别是 {memory_flash} 次方和 {time_flash} 次方。在 {at} 个 token 时，"
            f"保存分数的峰值内存是 flash 的 {more:.1f} 倍，耗时是 {longer:.1f} 倍。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Arithmetic of all rounds at 90 GFLOP/s, mostly the longest lengths'."""
        flops = 2 * self.num_heads * self.head_dim * self.max_len**2 * (4 / 3)
        return 3 + self.rounds * flops / 90e9 if bench_kind == "cpu" else None


def naive_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention as the formula is written, with all scores of all heads in memory.

    Args:
        q: [seq_len, num_heads, head_dim].
        k: like `q`.
        v: like `q`.

    Returns:
        Like `q`.
    """
    seq_len, _, head_dim = q.shape
    scores = torch.matmul(q.transpose(0, 1) * head_dim**-0.5, k.permute(1, 2, 0))  # [num_heads, seq_len, seq_len]
    later = torch.ones(seq_len, seq_len, dtype=torch.bool, device=q.device).triu_(1)
    scores.masked_fill_(later, -math.inf)
    return torch.matmul(scores.softmax(2), v.transpose(0, 1)).transpose(0, 1)


def log_slope(points: list[tuple[float, float]]) -> float:
    """The power p in y ~ x^p: the least-squares slope of log y against log x. At least two points."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - x_mean) ** 2 for x in xs)


def _slope(rows: list[Row], column: str) -> float:
    return log_slope([(row["seq_len"], row[column]) for row in rows][-SLOPE_ROWS:])


def _times(name: str, timing: Timing) -> Row:
    return {
        f"{name}_ms": timing.median_s * 1e3,
        f"{name}_p20_ms": timing.p20_s * 1e3,
        f"{name}_p80_ms": timing.p80_s * 1e3,
    }


def _flash_name(bench: Bench) -> str:
    return "Triton kernel" if bench.kind == "cuda" else "torch's fused CPU attention through kernels.flash_attention"
