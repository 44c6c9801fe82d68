"""How fast the kernels are at the sizes of real models, beside a copy and beside other libraries' kernels."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.errors import ResourceError
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.labs.kernel_speed_attention import CHUNKED_PREFILL, FLASH_PREFILL, PAGED_DECODE
from explorer.labs.kernel_speed_case import OURS, Kind, Shape
from explorer.labs.kernel_speed_latent import MLA_DECODE
from explorer.labs.kernel_speed_writes import BLOCK_COPY, KV_WRITE
from explorer.measuring import memory, timers
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text

KINDS: dict[str, Kind] = {
    "paged-decode": PAGED_DECODE,
    "chunked-prefill": CHUNKED_PREFILL,
    "flash-prefill": FLASH_PREFILL,
    "mla-decode": MLA_DECODE,
    "kv-write": KV_WRITE,
    "block-copy": BLOCK_COPY,
}
BATCHES, CONTEXTS = (1, 8, 64), (2048, 8192, 32768)
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# What a visitor's press may cost a CPU at one size: more is left out, and named.
MOST_CPU_BYTES, MOST_CPU_FLOPS = 2 << 30, 10**12


@LABS.register
@dataclass(frozen=True)
class KernelSpeed(Lab):
    """One kernel at growing sizes; rivals take turns with it in the same run."""

    name: ClassVar[str] = "kernel-speed"
    page: ClassVar[str] = "engine"
    needs_model: ClassVar[bool] = False
    title: ClassVar[Text] = Text("A kernel beside a plain copy", "kernel 与纯拷贝对比")
    question: ClassVar[Text] = Text(
        "How near does a kernel come to the speed at which this device copies memory, and who is faster at the same "
        "task?",
        "一个 kernel 离本设备拷贝内存的速度还有多远？同样的任务，谁更快？",
    )
    expect: ClassVar[Text] = Text(
        "Decode, writes and block copies do little arithmetic: the memory bounds them, and a share near 1 leaves "
        "nothing to gain. The share can pass 1 a little: a copy has to write too, and decode almost only reads. "
        "Prefill is the opposite: its share says nothing, its arithmetic does. Latent attention with 128 heads "
        "stands between the two. At batch 1 a GPU waits for its host to launch work, which engines avoid with CUDA "
        "graphs. On a CPU the kernels are torch code for CPUs, not Triton: their figures say nothing about a GPU.",
        "decode、写入和 block 拷贝的计算很少，受内存限制：比例接近 1 就没有余地了。比例也可能略高于 1：拷贝还要写，而 "
        "decode 几乎只读。prefill 正相反：要看算力，比例没有意义。128 个头的 latent attention 介于两者之间。batch 为 1 "
        "时，GPU 常在等主机下发任务，推理引擎用 CUDA graph 避免这一点。在 CPU 上运行的是给 CPU 写的 torch 代码，不是 "
        "Triton：这些数字不能说明 GPU 上的情况。",
    )
    source: ClassVar[str] = (
        "Bytes: every Key and Value once, Queries, output (writes and copies: read and written). FLOPs: scores and "
        "weighted sum, what the mask hides not counted. Rivals: torch SDPA on contiguous tensors; on a GPU also "
        "FlashInfer (arXiv:2501.01005) and flash-attn (arXiv:2307.08691) where installed"
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("run", "", Origin.COMPUTED),
        Column("call_ms", "ms", Origin.MEASURED),
        Column("call_p20_ms", "ms", Origin.MEASURED),
        Column("call_p80_ms", "ms", Origin.MEASURED),
        Column("gb_per_s", "GB/s", Origin.MEASURED),
        Column("share_of_copy", "x", Origin.MEASURED),
        Column("time_ratio", "x", Origin.MEASURED),
        Column("time_ratio_p20", "x", Origin.MEASURED),
        Column("time_ratio_p80", "x", Origin.MEASURED),
        Column("tflops_per_s", "TFLOP/s", Origin.MEASURED),
        Column("max_abs_difference", "", Origin.MEASURED),
        Column("batch", "sequences", Origin.COMPUTED),
        Column("kv_len", "tokens", Origin.COMPUTED),
        Column("moved_bytes", "bytes", Origin.COMPUTED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "run": Text("Who, at which size", "实现与规模"),
        "batch": Text("Batch", "batch"),
        "kv_len": Text("Each has", "每个序列"),
        "moved_bytes": Text("Must move", "必须搬运"),
        "call_ms": Text("One call", "一次调用"),
        "call_p20_ms": Text("p20", "p20"),
        "call_p80_ms": Text("p80", "p80"),
        "gb_per_s": Text("Traffic", "带宽"),
        "share_of_copy": Text("Share of a copy", "占拷贝的比例"),
        "tflops_per_s": Text("Arithmetic", "算力"),
        "time_ratio": Text("Its time / ours", "耗时 / 本 kernel"),
        "time_ratio_p20": Text("p20", "p20"),
        "time_ratio_p80": Text("p80", "p80"),
        "max_abs_difference": Text("Largest difference", "最大差异"),
    }
    chart: ClassVar[Chart | None] = Chart(x="run", y=("share_of_copy",), kind="bar")

    kernel: str = param("paged-decode", Text("Kernel", "kernel"), choices=tuple(KINDS))
    batch: int = param(
        8,
        Text("Sequences, up to", "序列数上限"),
        choices=BATCHES,
        help=Text("Prefill is measured with one.", "prefill 只测一个序列。"),
    )
    context: int = param(
        2048,
        Text("Tokens of each, up to", "每个序列的 token 上限"),
        choices=CONTEXTS,
        unit="tokens",
        help=Text("block-copy always copies one block of each.", "block-copy 固定为每个序列拷贝一个 block。"),
    )
    heads: str = param(
        "32/8/128",
        Text("Query heads / KV heads / head size", "Query 头 / KV 头 / 头维度"),
        choices=("32/8/128", "64/8/128", "9/3/64"),
        help=Text("mla-decode always has DeepSeek-V3's 128 heads.", "mla-decode 固定为 DeepSeek-V3 的 128 个头。"),
    )
    block_size: int = param(16, Text("Tokens in a block", "每个 block 的 token 数"), choices=(16, 64, 256))
    rounds: int = param(7, Text("Rounds", "轮数"), minimum=3, maximum=31, step=2)
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=tuple(DTYPES))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each contender at each size that fits here; sizes that do not are named."""
        _refuse_the_interpreter()
        bench.note(dtype=self.dtype)
        copy_gb_per_s, left_out, measured = bench.copy_gb_per_s(), [], 0
        bench.note(copy_gb_per_s=copy_gb_per_s)
        shapes = self.shapes()
        for done, shape in enumerate(shapes):
            yield Progress(done, len(shapes), Text(str(shape), str(shape)))
            bench.check()
            reason = self._too_large(bench, shape)
            if reason is not None:
                left_out.append(f"{shape}: {reason}")
                bench.note(left_out="; ".join(left_out))
                continue
            yield from self._rows(bench, shape, copy_gb_per_s)
            measured += 1
            memory.free_memory(bench.device)
        if not measured:
            raise ResourceError(
                Text(f"no size fits here ({'; '.join(left_out)}); choose smaller settings", "内存放不下；请把参数调小")
            )

    def shapes(self) -> list[Shape]:
        """All sizes up to the wanted ones, the wanted ones last."""
        num_heads, num_kv_heads, head_dim = map(int, self.heads.split("/"))
        kind = KINDS[self.kernel]
        batches = [n for n in BATCHES if n <= self.batch] if kind.batched else [1]
        lengths = [self.block_size] if kind.one_block else [n for n in CONTEXTS if n <= self.context]
        return [
            Shape(batch, kv_len, num_heads, num_kv_heads, head_dim, self.block_size, DTYPES[self.dtype])
            for batch in batches
            for kv_len in lengths
        ]

    def _too_large(self, bench: Bench, shape: Shape) -> str | None:
        kind = KINDS[self.kernel]
        need, free = kind.need_bytes(shape), memory.available_bytes(bench.device)
        if need > free:
            return f"needs {need / 2**30:.1f} GiB, {free / 2**30:.1f} are free"
        if bench.kind == "cpu" and (need > MOST_CPU_BYTES or kind.flops(shape) > MOST_CPU_FLOPS):
            return "too much for a CPU"
        return None

    def _rows(self, bench: Bench, shape: Shape, copy_gb_per_s: float) -> Iterator[Row]:
        case = KINDS[self.kernel].make(shape, bench.device)
        absent = "; ".join(f"{name}: {reason}" for name, reason in case.absent.items())
        bench.note(absent=absent, implementation=f"{self._implementation(bench)}; absent rivals: {absent or 'none'}")
        differences = case.differences()
        contest = bench.rivals({name: case.piece(name, bench.device) for name in case.calls}, repeats=self.rounds)
        for name in case.calls:
            timing = contest.timings[name].per(case.count(bench.device))
            traffic = case.work.num_bytes / timing.median_s / 1e9
            row: Row = {
                "run": f"{name}, {shape}",
                "batch": shape.batch,
                "kv_len": shape.kv_len,
                "moved_bytes": case.work.num_bytes,
                "call_ms": timing.median_s * 1e3,
                "call_p20_ms": timing.p20_s * 1e3,
                "call_p80_ms": timing.p80_s * 1e3,
                "gb_per_s": traffic,
                "share_of_copy": traffic / copy_gb_per_s,
                "tflops_per_s": case.work.flops / timing.median_s / 1e12 if case.work.flops else None,
                "max_abs_difference": differences.get(name),
            }
            ratio = None if name == OURS else contest.ratio(name, OURS)
            yield row | {
                "time_ratio": ratio and ratio.median,
                "time_ratio_p20": ratio and ratio.p20,
                "time_ratio_p80": ratio and ratio.p80,
            }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """This kernel at the largest size, and the fastest rival there.

        `share_of_copy` speaks of the size that was asked for: it is None if that did not fit.
        """
        ours = [row for row in rows if row["run"].startswith(OURS)][-1]
        size = (ours["batch"], ours["kv_len"])
        rivals = [row for row in rows if (row["batch"], row["kv_len"]) == size and row is not ours]
        fastest = min(rivals, key=lambda row: row["time_ratio"])
        wanted = self.shapes()[-1]
        share = ours["share_of_copy"] if size == (wanted.batch, wanted.kv_len) else None
        return {
            "batch": ours["batch"],
            "kv_len": ours["kv_len"],
            "call_ms": ours["call_ms"],
            "gb_per_s": ours["gb_per_s"],
            "copy_gb_per_s": ours["gb_per_s"] / ours["share_of_copy"],
            "share_of_copy": share,
            "share_of_copy_p20": share and share * ours["call_ms"] / ours["call_p80_ms"],
            "share_of_copy_p80": share and share * ours["call_ms"] / ours["call_p20_ms"],
            "tflops_per_s": ours["tflops_per_s"],
            "fastest_rival": fastest["run"].partition(",")[0],
            "time_ratio": fastest["time_ratio"],
            "time_ratio_p20": fastest["time_ratio_p20"],
            "time_ratio_p80": fastest["time_ratio_p80"],
            "max_abs_difference": max(row["max_abs_difference"] for row in rows if row["run"] != ours["run"]
                                      and row["max_abs_difference"] is not None),
        }  # fmt: skip

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Traffic beside the copy, arithmetic, and the fastest rival."""
        size = f"{summary['batch']} × {summary['kv_len']:,}"
        speed, copy = f"{summary['gb_per_s']:,.1f} GB/s", f"{summary['copy_gb_per_s']:,.1f} GB/s"
        times, rival = f"{summary['time_ratio']:.2f}", summary["fastest_rival"]
        flops = summary["tflops_per_s"]
        done = ("", "") if flops is None else (f", and {flops:.3g} TFLOP/s", f"，{flops:.3g} TFLOP/s")
        return Text(
            f"{self.kernel} at {size}: {speed}, where a copy reaches {copy}{done[0]}. The fastest rival here, {rival}, "
            f"takes {times} times as long.",
            f"{self.kernel}，规模 {size}：{speed}（纯拷贝为 {copy}）{done[1]}。这里最快的对手是 {rival}，"
            f"耗时是本 kernel 的 {times} 倍。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """On a CPU: every contender's rounds over all layers, at 4 GB/s and 60 GFLOP/s, and making the caches."""
        if bench_kind != "cpu":
            return None
        kind, seconds = KINDS[self.kernel], 3.0
        for shape in self.shapes():
            need, flops = kind.need_bytes(shape), kind.flops(shape)
            if need <= MOST_CPU_BYTES and flops <= MOST_CPU_FLOPS:
                seconds += 2 * (self.rounds + 3) * max(need / 2 / 4e9, flops / 60e9) + need / 5e8
        return seconds

    def _implementation(self, bench: Bench) -> str:
        how = "Triton kernel" if bench.kind == "cuda" else "torch path for CPUs"
        return f"{OURS}: kernels.{KINDS[self.kernel].function}, {how}"


def _refuse_the_interpreter() -> None:
    """Before anything is made: at these sizes it would interpret for minutes until the timers refuse it."""
    if timers.interpreter_on():
        raise ResourceError(
            Text(
                "Triton's interpreter is on (TRITON_INTERPRET=1) and its runs are never timed; unset it to measure",
                "Triton 解释器已开启（TRITON_INTERPRET=1），解释执行从不计时；取消该变量后再测量",
            )
        )
