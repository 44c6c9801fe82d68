"""Where this device's ridge lies: its copy speed, its best matrix products, and decode's operations against both."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.estimators import roofline
from explorer.estimators.roofline import Work
from explorer.labs.base import LABS, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.measuring.timers import Timing
from explorer.params import param
from explorer.text import Text
from kernels.grouped_attention import decode_attention

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
HEAD_DIM = 128
KV_HEADS = 4
QUERIES_PER_KV = (1, 8, 64)
WEIGHT_ROWS = (1, 16, 256)
COPY = "copy"


@LABS.register
@dataclass(frozen=True)
class RooflineDevice(Lab):
    """Matrix products give the flat part of the roof, a copy the slope; then operations as decode has them."""

    name: ClassVar[str] = "roofline-device"
    page: ClassVar[str] = "roofline"
    needs_model: ClassVar[bool] = False
    title: ClassVar[Text] = Text("Where is this machine's ridge?", "这台机器的屋脊在哪里？")
    question: ClassVar[Text] = Text(
        "How fast does this machine copy, how fast does it multiply matrices, and how near to that do the operations "
        "of decode come?",
        "这台机器拷贝有多快，矩阵乘法有多快，decode 里的操作又离这两个极限有多近？",
    )
    expect: ClassVar[Text] = Text(
        "Large square products are the fastest; their best sets the flat roof. A projection with one row, and "
        "attention with one Query per KV head, do about one operation a byte in bf16: even at the copy's full speed "
        "their GFLOP/s could be no more than its GB/s. More rows or more Queries per KV head do more operations with "
        "the same bytes, so GFLOP/s rise until another limit is met. On a CPU, attention here may stay well below the "
        "copy: softmax and conversions cost time that is not counted as work. A share above 1 is possible too: a copy "
        "writes as well, and small matrices stay in the processor's own caches.",
        "大的方阵乘法最快，其中最好的成绩就是平的屋顶。只有一行的投影，以及每个 KV head 只有一个 Query 的注意力，"
        "在 bf16 下每字节约做一次运算：即使达到拷贝的全速，GFLOP/s 也不会超过它的 GB/s。行数或每个 KV head 的 Query "
        "增多，同样的字节上做的运算更多，GFLOP/s 随之上升，直到碰到别的限制。在 CPU 上，这里的注意力可能远低于拷贝："
        "softmax 和类型转换也花时间，却不算作工作量。比例也可能超过 1：拷贝还要写，"
        "小矩阵又会留在处理器自己的缓存里。",
    )
    source: ClassVar[str] = (
        "Roofline model, Williams, Waterman and Patterson 2009; bytes counted once, softmax not counted"
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("operation", "", Origin.COMPUTED),
        Column("dtype", "", Origin.COMPUTED),
        Column("intensity", "FLOP/byte", Origin.COMPUTED),
        Column("step_ms", "ms", Origin.MEASURED),
        Column("step_p20_ms", "ms", Origin.MEASURED),
        Column("step_p80_ms", "ms", Origin.MEASURED),
        Column("achieved_gflops", "GFLOP/s", Origin.MEASURED),
        Column("achieved_gb_per_s", "GB/s", Origin.MEASURED),
        Column("bound_fraction", "x", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "operation": Text("Operation", "操作"),
        "dtype": Text("Element type", "元素类型"),
        "intensity": Text("Intensity", "算术强度"),
        "step_ms": Text("Once", "一次"),
        "step_p20_ms": Text("p20", "p20"),
        "step_p80_ms": Text("p80", "p80"),
        "achieved_gflops": Text("Arithmetic", "算力"),
        "achieved_gb_per_s": Text("Traffic", "带宽"),
        "bound_fraction": Text("Of this machine's own roof", "相当于本机屋顶的"),
    }

    size: int = param(1024, Text("Largest square product", "最大的方阵"), choices=(256, 512, 1024, 2048, 4096, 8192))
    kv_len: int = param(
        32_768, Text("Cached tokens", "缓存的 token 数"), minimum=1_024, maximum=262_144, step=1_024, unit="tokens"
    )
    width: int = param(4096, Text("Width of the projection", "投影的宽度"), choices=(1024, 2048, 4096, 8192))
    rounds: int = param(5, Text("Rounds", "轮数"), minimum=3, maximum=31, step=2)

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """The copy, square products in both dtypes, a projection with several rows, attention with several groups."""
        bench.note(implementation="torch matmul; kernels.grouped_attention", dtype="bf16, fp32")
        need = 3 * self.size**2 * 4 + 2 * self.width**2 * 2 + 2 * 2 * KV_HEADS * self.kv_len * HEAD_DIM * 2
        bench.need_bytes(need, Text("the matrices and the cache", "矩阵与缓存"))
        yield Progress(0, 4, Text("copying", "拷贝"))
        copy = bench.copy_gb_per_s()
        yield _copy_row(copy)
        peaks: dict[str, float] = {}
        for done, dtype in enumerate(DTYPES, start=1):
            yield Progress(done, 4, Text(f"square products, {dtype}", f"方阵乘法，{dtype}"))
            timed = [(f"{n} × {n} × {n}", *_product(bench, n, n, dtype, self.rounds)) for n in self._sizes()]
            # The flat roof is the best of them, so it is known only when all have been timed.
            peaks[dtype] = max(work.flops / timing.median_s for _, work, timing in timed)
            for name, work, timing in timed:
                yield _row(name, dtype, work, timing, peaks[dtype], copy)
        yield Progress(3, 4, Text("projections", "投影"))
        for rows in WEIGHT_ROWS:
            work, timing = _product(bench, rows, self.width, "bf16", self.rounds)
            yield _row(f"{rows} × {self.width} × {self.width}", "bf16", work, timing, peaks["bf16"], copy)
        yield Progress(4, 4, Text("decode attention", "decode 注意力"))
        for queries in QUERIES_PER_KV:
            work, timing = _attention(bench, queries, self.kv_len, self.rounds)
            yield _row(f"attention, g = {queries}", "bf16", work, timing, peaks["bf16"], copy)

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The ridge, what it is made of, and what attention with one Query per KV head reaches."""
        square = {dtype: [row for row in rows if row["dtype"] == dtype and _is_square(row)] for dtype in DTYPES}
        peaks = {dtype: max(row["achieved_gflops"] for row in found) for dtype, found in square.items()}
        copy = next(row["achieved_gb_per_s"] for row in rows if row["operation"] == COPY)
        alone = next(row for row in rows if row["operation"] == f"attention, g = {QUERIES_PER_KV[0]}")
        return {
            "ridge_flops_per_byte": peaks["bf16"] / copy,
            "copy_gb_per_s": copy,
            "peak_gflops": peaks["bf16"],
            "peak_fp32_gflops": peaks["fp32"],
            "attention_intensity": alone["intensity"],
            "attention_gb_per_s": alone["achieved_gb_per_s"],
            "attention_gflops": alone["achieved_gflops"],
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """The ridge in one line, and where attention lies below it."""
        ridge, copy = f"{summary['ridge_flops_per_byte']:.1f}", f"{summary['copy_gb_per_s']:.1f}"
        peak, reached = f"{summary['peak_gflops']:,.0f}", f"{summary['attention_gflops']:,.1f}"
        read = f"{summary['attention_gb_per_s']:.1f}"
        return Text(
            f"This machine's ridge in bf16 lies at {ridge} FLOP/byte: {peak} GFLOP/s over {copy} GB/s. Attention with "
            f"one Query per KV head moves {read} GB/s and reaches {reached} GFLOP/s.",
            f"本机 bf16 的屋脊在每字节 {ridge} 次运算处：{peak} GFLOP/s 除以 {copy} GB/s。每个 KV head 一个 Query 的"
            f"注意力以 {read} GB/s 读写，算力达到 {reached} GFLOP/s。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Products at 40 GFLOP/s, attention at 5 GB/s: a slow machine's pace."""
        if bench_kind != "cpu":
            return None
        products = 2 * sum(2 * n**3 for n in self._sizes()) / 40e9
        projections = sum(2 * rows * self.width**2 for rows in WEIGHT_ROWS) / 40e9
        attention = len(QUERIES_PER_KV) * 4 * KV_HEADS * self.kv_len * HEAD_DIM / 5e9 * 2
        return 3 + (self.rounds + 1) * (products + projections + attention)

    def _sizes(self) -> tuple[int, ...]:
        return self.size // 4, self.size // 2, self.size


def _product(bench: Bench, rows: int, width: int, dtype: str, rounds: int) -> tuple[Work, Timing]:
    """`[rows, width] x [width, width]`, timed."""
    form = DTYPES[dtype]
    left = torch.randn(rows, width, device=bench.device, dtype=form)
    right = torch.randn(width, width, device=bench.device, dtype=form)
    out = torch.empty(rows, width, device=bench.device, dtype=form)
    timing = bench.time(lambda: torch.mm(left, right, out=out), warmup=1, repeats=rounds)
    return roofline.gemm(rows, width, width, form.itemsize, form.itemsize), timing


def _attention(bench: Bench, queries_per_kv: int, kv_len: int, rounds: int) -> tuple[Work, Timing]:
    """One sequence's decode attention: `KV_HEADS` long Keys and Values, `queries_per_kv` Queries for each."""
    heads = KV_HEADS * queries_per_kv
    q = torch.randn(1, heads, HEAD_DIM, device=bench.device, dtype=torch.bfloat16)
    k = torch.randn(1, KV_HEADS, kv_len, HEAD_DIM, device=bench.device, dtype=torch.bfloat16)
    v = torch.randn(1, KV_HEADS, kv_len, HEAD_DIM, device=bench.device, dtype=torch.bfloat16)
    timing = bench.time(lambda: decode_attention(q, k, v, None, HEAD_DIM**-0.5), warmup=1, repeats=rounds)
    return roofline.grouped_attention(heads, KV_HEADS, HEAD_DIM, kv_len), timing


def _row(name: str, dtype: str, work: Work, timing: Timing, peak_flops: float, copy_gb_per_s: float) -> Row:
    reached = work.flops / timing.median_s
    roof = min(peak_flops, float(work.intensity) * copy_gb_per_s * 1e9)
    return {
        "operation": name,
        "dtype": dtype,
        "intensity": float(work.intensity),
        "step_ms": timing.median_s * 1e3,
        "step_p20_ms": timing.p20_s * 1e3,
        "step_p80_ms": timing.p80_s * 1e3,
        "achieved_gflops": reached / 1e9,
        "achieved_gb_per_s": work.num_bytes / timing.median_s / 1e9,
        "bound_fraction": reached / roof,
    }


def _copy_row(gb_per_s: float) -> Row:
    """The copy does no arithmetic; its speed is the slope of the roof."""
    blank: Row = dict.fromkeys(("step_ms", "step_p20_ms", "step_p80_ms", "bound_fraction"))
    zero = {"intensity": 0.0, "achieved_gflops": 0.0}
    return {"operation": COPY, "dtype": "uint8", **zero, **blank, "achieved_gb_per_s": gb_per_s}


def _is_square(row: Row) -> bool:
    sides = row["operation"].split(" × ")
    return len(sides) == 3 and len(set(sides)) == 1
