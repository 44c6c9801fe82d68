"""The same Query heads with fewer KV heads, and with latents: what a decode step reads, and how long it takes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.labs._heads_cases import BLOCK_SIZE, Case, Pool, Step, latent, shared_heads
from explorer.labs._steadiness import between, remark, steadiness
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.last_cache import last_cache_bytes
from explorer.measuring.record import Column, Origin, Row
from explorer.measuring.timers import Contest
from explorer.params import param
from explorer.text import Text

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
MLA = "MLA"
LENGTHS = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
ASSUMED_CACHE = 64 << 20  # where the system does not tell
GPU_CALLS = 8  # calls in one timed piece: while one runs, the host prepares the next


@LABS.register
@dataclass(frozen=True)
class Heads(Lab):
    """One decode step's attention in one layer, for 1, 2, 4, ... KV heads and for MLA, all timed in turn."""

    name: ClassVar[str] = "heads"
    page: ClassVar[str] = "heads"
    title: ClassVar[Text] = Text("Fewer KV heads: fewer bytes, less time?", "KV head 减少，字节少了，时间也少了吗？")
    question: ClassVar[Text] = Text(
        "With the same Query heads, how much less does a decode step read with fewer KV heads or with latents, how "
        "much sooner is it done, and how near does it come to what this machine could do?",
        "Query head 不变，减少 KV head 或改存潜变量，decode 的一步少读多少字节、快多少？离这台机器的极限还有多远？",
    )
    expect: ClassVar[Text] = Text(
        "Bytes halve with each halving of the KV heads; the arithmetic stays the same, because every Query head "
        "still weighs every token. So time follows the bytes only as long as memory sets the pace. On a CPU that "
        "ends soon: with few KV heads the products and the softmax take longer than the reading, and time falls less "
        "and less. A GPU has far more arithmetic for each byte, so there it can go on for longer. MLA reads few "
        "bytes and does several times the arithmetic, since each head works on all 576 numbers of a token; its widths "
        "are DeepSeek-V2's (512 + 64) whatever the head dimension. The bound is the longer of two times: all bytes at "
        "this machine's copy speed, all operations at the speed of its best matrix product. A copy writes as well, so "
        "pure reading can turn out a little faster than the bound. Projections are in none of the rows.",
        "KV head 每减半，字节就减半；运算量却不变，因为每个 Query head 仍要给每个 token 算权重。所以只有在内存决定快"
        "慢时，时间才随字节下降。CPU 上这很快就到头：KV head 少了以后，乘法和 softmax 比读取更费时，时间便降得越来越"
        "少。GPU 每读一字节能做的运算多得多，所以在那里可以持续得更久。MLA 读的字节少，运算却多出数倍，因为每个 head "
        "都要处理一个 token 的全部 576 个数；它的维度取自 DeepSeek-V2（512 + 64），不随 head 维度改变。"
        "下限取两个时间中较长的一个：全部字节按本机拷贝速度，全部运算按本机最快的矩阵乘法。拷贝还要写，所以单纯的读取有可能略快于下限。各行都不含投影。",
    )
    source: ClassVar[str] = (
        "MQA 2019, arXiv:1911.02150; GQA 2023, arXiv:2305.13245; DeepSeek-V2 2024, arXiv:2405.04434; roofline 2009"
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("kv_heads", "", Origin.COMPUTED),
        Column("stored_bytes", "bytes", Origin.MEASURED),
        Column("step_ms", "ms", Origin.MEASURED),
        Column("step_p20_ms", "ms", Origin.MEASURED),
        Column("step_p80_ms", "ms", Origin.MEASURED),
        Column("bound_ms", "ms", Origin.MEASURED),
        Column("over_bound", "x", Origin.MEASURED),
        Column("time_ratio", "x", Origin.MEASURED),
        Column("time_ratio_p20", "x", Origin.MEASURED),
        Column("time_ratio_p80", "x", Origin.MEASURED),
        Column("gb_per_s", "GB/s", Origin.MEASURED),
        Column("copy_fraction", "x", Origin.MEASURED),
        Column("flops", "FLOP", Origin.COMPUTED),
        Column("intensity", "FLOP/byte", Origin.COMPUTED),
        Column("max_abs_difference", "", Origin.MEASURED),
        Column("result_rms", "", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "kv_heads": Text("KV heads", "KV head"),
        "stored_bytes": Text("Stored and read", "存下并读取"),
        "step_ms": Text("One step", "一步"),
        "step_p20_ms": Text("p20", "p20"),
        "step_p80_ms": Text("p80", "p80"),
        "bound_ms": Text("Roofline bound", "roofline 下限"),
        "over_bound": Text("Step / bound", "一步 / 下限"),
        "time_ratio": Text("Against MQA", "相对 MQA"),
        "time_ratio_p20": Text("p20", "p20"),
        "time_ratio_p80": Text("p80", "p80"),
        "gb_per_s": Text("Read", "读取速度"),
        "copy_fraction": Text("Of the copy's speed", "相当于拷贝的"),
        "flops": Text("Arithmetic", "运算量"),
        "intensity": Text("Intensity", "算术强度"),
        "max_abs_difference": Text("Largest difference from the reference", "与参考实现的最大差异"),
        "result_rms": Text("Result, root mean square", "结果的均方根"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="kv_heads",
        y=("step_ms", "bound_ms"),
        kind="bar",
        low={"step_ms": "step_p20_ms"},
        high={"step_ms": "step_p80_ms"},
    )
    needs_model: ClassVar[bool] = False

    num_heads: int = param(32, Text("Query heads", "Query head"), choices=(8, 16, 32, 64, 128))
    kv_len: int = param(4_096, Text("Context", "上下文"), choices=LENGTHS, unit="tokens")
    batch: int = param(1, Text("Requests", "请求数"), choices=(1, 2, 4, 8, 16, 32, 64))
    head_dim: int = param(128, Text("Head dimension", "head 维度"), choices=(64, 128))
    rounds: int = param(31, Text("Rounds", "轮数"), minimum=3, maximum=101, step=2)
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=("bf16", "fp32"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """A row for each number of KV heads, then one for MLA; they come together, being timed in turn."""
        step = Step(self.batch, self.kv_len, self.num_heads, self.head_dim, DTYPES[self.dtype], bench.device)
        yield Progress(0, 4, Text("laying out the caches", "正在准备缓存"))
        pool, paged = _pool(bench, step), bench.kind == "cuda"
        cases = {self._label(heads): shared_heads(step, heads, pool, paged) for heads in self._kv_heads()}
        cases[MLA] = latent(step, pool)
        bench.note(dtype=self.dtype, implementation=_implementation(bench))
        checked = {}
        for name, case in cases.items():
            yield Progress(1, 4, Text(f"checking {name}", f"正在核对 {name}"))
            bench.check()
            rms = case.attend().float().square().mean().sqrt().item()  # a difference means little without it
            checked[name] = {"max_abs_difference": case.difference(), "result_rms": rms}
        yield Progress(2, 4, Text("copying, and multiplying matrices", "正在测拷贝与矩阵乘法"))
        copy, peak = bench.copy_gb_per_s(), _peak_flops(bench, step.dtype)
        bench.note(copy_gb_per_s=round(copy, 2), peak_gflops=round(peak / 1e9, 1))
        yield Progress(3, 4, Text(f"timing {len(cases)} ways in turn", f"{len(cases)} 种方式轮流计时"))
        calls = GPU_CALLS if bench.kind == "cuda" else 1
        contest = bench.rivals({n: _repeat(c, calls) for n, c in cases.items()}, warmup=2, repeats=self.rounds)
        for name, case in cases.items():
            yield self._row(name, case, contest, calls, copy, peak) | checked[name]

    def _row(self, name: str, case: Case, contest: Contest, calls: int, copy: float, peak: float) -> Row:
        timing, pairs = contest.timings[name].per(calls), contest.ratio(name, self._label(1))
        bound_s = case.work.bound_s(int(peak), int(copy * 1e9))
        speed = case.stored_bytes / timing.median_s / 1e9
        return {
            "kv_heads": name,
            "stored_bytes": case.stored_bytes,
            "step_ms": timing.median_s * 1e3,
            "step_p20_ms": timing.p20_s * 1e3,
            "step_p80_ms": timing.p80_s * 1e3,
            "bound_ms": bound_s * 1e3,
            "over_bound": timing.median_s / bound_s,
            "time_ratio": pairs.median,
            "time_ratio_p20": pairs.p20,
            "time_ratio_p80": pairs.p80,
            "gb_per_s": speed,
            "copy_fraction": speed / copy,
            "flops": case.work.flops,
            "intensity": float(case.work.intensity),
        }

    def _kv_heads(self) -> list[int]:
        return [1 << i for i in range(self.num_heads.bit_length())]

    def _label(self, kv_heads: int) -> str:
        return f"{kv_heads} ({'MQA' if kv_heads == 1 else 'MHA' if kv_heads == self.num_heads else 'GQA'})"

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """All rows' bytes and times, and MHA and MLA against MQA."""
        *shared, mla = rows
        mqa, mha = shared[0], shared[-1]
        return {
            "kv_heads": self._kv_heads(),
            "bytes": [row["stored_bytes"] for row in shared],
            "ms": [row["step_ms"] for row in shared],
            "bytes_ratio_mha_to_mqa": mha["stored_bytes"] / mqa["stored_bytes"],
            "time_ratio_mha_to_mqa": mha["time_ratio"],
            "time_ratio_mha_to_mqa_p20": mha["time_ratio_p20"],
            "time_ratio_mha_to_mqa_p80": mha["time_ratio_p80"],
            "mla_bytes": mla["stored_bytes"],
            "bytes_ratio_mla_to_mqa": mla["stored_bytes"] / mqa["stored_bytes"],
            "mla_ms": mla["step_ms"],
            "time_ratio_mla_to_mqa": mla["time_ratio"],
            "time_ratio_mla_to_mqa_p20": mla["time_ratio_p20"],
            "time_ratio_mla_to_mqa_p80": mla["time_ratio_p80"],
            "max_abs_difference": max(row["max_abs_difference"] for row in rows),
            **steadiness(rows, "step"),
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Bytes and time of MHA and of MLA, both against MQA, with the spread of the times."""
        fewer, latents = f"{summary['bytes_ratio_mha_to_mqa']:.1f}", f"{summary['bytes_ratio_mla_to_mqa']:.2f}"
        mha, mla = (f"time_ratio_{name}_to_mqa" for name in ("mha", "mla"))
        (time, around), (mla_time, mla_around) = (
            (f"{summary[key]:.1f}", between(summary[f"{key}_p20"], summary[f"{key}_p80"])) for key in (mha, mla)
        )
        doubt = remark(summary)
        return Text(
            f"Against MQA, MHA reads {fewer} times the bytes and takes {time} times as long {around.en}; MLA reads "
            f"{latents} times the bytes and takes {mla_time} times as long {mla_around.en}. In brackets: 20th to 80th "
            f"percentile.{doubt.en}",
            f"与 MQA 相比，MHA 读的字节是 {fewer} 倍，耗时是 {time} 倍{around.zh}；MLA 读的字节是 {latents} 倍，"
            f"耗时是 {mla_time} 倍{mla_around.zh}。括号内为第 20 到第 80 百分位。{doubt.zh}",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Filling, checking and timing at a slow CPU's pace."""
        if bench_kind != "cpu":
            return None
        step = Step(self.batch, self.kv_len, self.num_heads, self.head_dim, DTYPES[self.dtype], torch.device("cpu"))
        read = sum(step.kv_bytes(heads) for heads in self._kv_heads()) + step.latent_bytes()
        arithmetic = self.batch * self.kv_len * self.num_heads * (len(self._kv_heads()) * self.head_dim + 1_088)
        return 3 + 2 * read / self.batch / 1e9 + (self.rounds + 2) * (read / 6e9 + arithmetic * 4 / 60e9)


def _pool(bench: Bench, step: Step) -> Pool:
    """Numbers for all caches, so long that what a call reads has been pushed out of the processor's own caches."""
    largest = max(step.kv_bytes(step.num_heads), step.latent_bytes())
    known = last_cache_bytes(bench.device)
    cache = ASSUMED_CACHE if known is None else known
    size = cache + 2 * largest
    bench.need_bytes(size + largest, Text("the pool of caches", "缓存池"))
    told = f"{cache >> 20} MiB" + (" (assumed)" if known is None else "")
    bench.note(
        last_level_cache=told, read_from=f"a pool of {size >> 20} MiB in turn, each call the part read longest ago"
    )
    return Pool(size, step, bench.check)


def _repeat(case: Case, calls: int) -> Callable[[], None]:
    def piece() -> None:
        for _ in range(calls):
            case.attend()

    return piece


def _peak_flops(bench: Bench, dtype: torch.dtype) -> float:
    """The best of two square products, operations a second: the flat part of this machine's roof."""
    rates = []
    for n in (4_096, 8_192) if bench.kind == "cuda" else (512, 1_024):
        left, right = (torch.randn(n, n, device=bench.device).to(dtype) for _ in range(2))
        out = torch.empty_like(left)
        timing = bench.time(lambda a=left, b=right, c=out: torch.mm(a, b, out=c), warmup=1, repeats=5)  # type: ignore[misc]
        rates.append(2 * n**3 / timing.median_s)
    return max(rates)


def _implementation(bench: Bench) -> str:
    if bench.kind == "cuda":
        return f"MHA, GQA, MQA: Triton paged_attention; MLA: Triton mla_decode; blocks of {BLOCK_SIZE} anywhere"
    return f"MHA, GQA, MQA: torch grouped_attention, rows in one piece; MLA: torch mla_decode, blocks of {BLOCK_SIZE}"
