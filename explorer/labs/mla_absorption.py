"""Latent attention two ways: expand every head's Keys and Values each step, or absorb the projections."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from explorer.labs._steadiness import between, remark, steadiness
from explorer.labs._words import counted
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text
from kernels.mla_projection import mla_decode_absorbed, mla_decode_expanded

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NOPE_DIM, ROPE_DIM, V_DIM = 128, 64, 128  # of a head, in all of DeepSeek-V2, V2-Lite and V3
BLOCK_SIZE = 64
SHORTEST = 256


@LABS.register
@dataclass(frozen=True)
class MlaAbsorption(Lab):
    """One decode step of one layer, both ways and against stored per-head Keys and Values, as the context doubles."""

    name: ClassVar[str] = "mla-absorption"
    page: ClassVar[str] = "heads"
    title: ClassVar[Text] = Text("MLA: expand or absorb?", "MLA：展开还是吸收？")
    question: ClassVar[Text] = Text(
        "Does moving the up-projections to the Query and behind the sum change the result, and what does it save?",
        "把上投影矩阵移到 Query 一侧和求和之后，结果会变吗？能省下什么？",
    )
    expect: ClassVar[Text] = Text(
        "Equal results up to rounding: it is the same product, associated differently. Expanding multiplies the whole "
        "context by two matrices each step; absorbing reads the latents once. The third way keeps every head's Keys "
        "and Values, as plain multi-head attention does: no expansion, many times the bytes. It wins while the "
        "context is short, because absorbing first has two weight matrices to read; where absorbing overtakes it "
        "depends on the machine. Every call reads the same memory again, so bytes that fit into the processor's own "
        "cache cost less here than in a whole model. The heads are those of DeepSeek-V2-Lite (16; V2 has 128), one "
        "layer, random numbers instead of weights.",
        "结果在舍入误差内相等：同一个乘积，只是结合次序不同。展开每步都要让整个上下文乘以两个矩阵；吸收只需把潜变量"
        "读一遍。第三种方式像普通多头注意力那样，为每个 head 保存 Key 和 Value：不必展开，但字节数多出许多倍。"
        "上下文很短时它更快，因为吸收要先读两个权重矩阵；到多长时被吸收反超，取决于机器。每次调用读的是同一块内存，"
        "所以能放进处理器自身缓存的部分，在这里比在整个模型里便宜。head 的尺寸取自 DeepSeek-V2-Lite"
        "（16 个 head；V2 为 128 个），只有一层，用随机数代替权重。",
    )
    source: ClassVar[str] = "DeepSeek-V2 2024, arXiv:2405.04434, section 2.1 and appendix C"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("kv_len", "tokens", Origin.COMPUTED),
        Column("absorbed_ms", "ms", Origin.MEASURED),
        Column("absorbed_p20_ms", "ms", Origin.MEASURED),
        Column("absorbed_p80_ms", "ms", Origin.MEASURED),
        Column("expanded_ms", "ms", Origin.MEASURED),
        Column("expanded_p20_ms", "ms", Origin.MEASURED),
        Column("expanded_p80_ms", "ms", Origin.MEASURED),
        Column("stored_heads_ms", "ms", Origin.MEASURED),
        Column("stored_heads_p20_ms", "ms", Origin.MEASURED),
        Column("stored_heads_p80_ms", "ms", Origin.MEASURED),
        Column("speedup", "x", Origin.MEASURED),
        Column("speedup_p20", "x", Origin.MEASURED),
        Column("speedup_p80", "x", Origin.MEASURED),
        Column("stored_heads_ratio", "x", Origin.MEASURED),
        Column("max_abs_difference", "", Origin.MEASURED),
        Column("result_rms", "", Origin.MEASURED),
        Column("latent_bytes", "bytes", Origin.MEASURED),
        Column("stored_heads_bytes", "bytes", Origin.MEASURED),
        Column("expansion_bytes", "bytes", Origin.COMPUTED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "kv_len": Text("Context", "上下文"),
        "absorbed_ms": Text("Absorbed", "吸收"),
        "absorbed_p20_ms": Text("p20", "p20"),
        "absorbed_p80_ms": Text("p80", "p80"),
        "expanded_ms": Text("Expanded", "展开"),
        "expanded_p20_ms": Text("p20", "p20"),
        "expanded_p80_ms": Text("p80", "p80"),
        "stored_heads_ms": Text("All heads stored", "保存所有 head"),
        "stored_heads_p20_ms": Text("p20", "p20"),
        "stored_heads_p80_ms": Text("p80", "p80"),
        "speedup": Text("Expanded / absorbed", "展开 / 吸收"),
        "speedup_p20": Text("p20", "p20"),
        "speedup_p80": Text("p80", "p80"),
        "stored_heads_ratio": Text("Stored / absorbed", "保存 / 吸收"),
        "max_abs_difference": Text("Largest difference", "最大差异"),
        "result_rms": Text("Result, root mean square", "结果的均方根"),
        "latent_bytes": Text("Latents kept", "保存的潜变量"),
        "stored_heads_bytes": Text("All heads' K and V", "所有 head 的 K 和 V"),
        "expansion_bytes": Text("Written by each expansion", "每次展开写出的字节"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="kv_len",
        y=("absorbed_ms", "expanded_ms", "stored_heads_ms"),
        log_x=True,
        log_y=True,
        low={name: name.replace("_ms", "_p20_ms") for name in ("absorbed_ms", "expanded_ms", "stored_heads_ms")},
        high={name: name.replace("_ms", "_p80_ms") for name in ("absorbed_ms", "expanded_ms", "stored_heads_ms")},
    )
    needs_model: ClassVar[bool] = False

    kv_len: int = param(2048, Text("Longest context", "最长上下文"), minimum=1, maximum=16384, step=1, unit="tokens")
    num_heads: int = param(16, Text("Heads", "head 数"), choices=(4, 8, 16, 32, 64, 128))
    latent_dim: int = param(512, Text("Latent dimension", "潜变量维度"), choices=(128, 256, 512))
    rounds: int = param(7, Text("Rounds", "轮数"), minimum=3, maximum=31, step=2)
    dtype: str = param("fp32", Text("Element type", "元素类型"), choices=("fp32", "bf16"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each context, doubling up to `kv_len`."""
        contexts = [n for n in (SHORTEST << i for i in range(8)) if n < self.kv_len] + [self.kv_len]
        itemsize = DTYPES[self.dtype].itemsize
        per_token = self.latent_dim + ROPE_DIM + 2 * self.num_heads * (NOPE_DIM + ROPE_DIM + V_DIM)
        bench.need_bytes(3 * self.kv_len * per_token * itemsize, Text("Keys and Values", "Key 和 Value"))
        bench.note(dtype=self.dtype, implementation=_implementation(bench), block_size=BLOCK_SIZE)
        for done, kv_len in enumerate(contexts):
            yield Progress(done, len(contexts), Text(counted(kv_len, "token"), f"{kv_len:,} 个 token"))
            bench.check()
            yield self._row(bench, kv_len)

    def _row(self, bench: Bench, kv_len: int) -> Row:
        case = _Case(self, kv_len, bench.device)
        exact, absorbed = case.expanded(), case.absorbed()
        difference = max((exact - other).abs().max().item() for other in (absorbed, case.stored_heads()))
        rivals: dict[str, Callable[[], Any]] = {
            "absorbed": case.absorbed,
            "expanded": case.expanded,
            "stored_heads": case.stored_heads,
        }
        contest = bench.rivals(rivals, warmup=2, repeats=self.rounds)
        gain = contest.ratio("expanded", "absorbed")
        row: Row = {"kv_len": kv_len}
        for name, timing in contest.timings.items():
            row |= {f"{name}_ms": timing.median_s * 1e3, f"{name}_p20_ms": timing.p20_s * 1e3}
            row |= {f"{name}_p80_ms": timing.p80_s * 1e3}
        element = DTYPES[self.dtype].itemsize
        return row | {
            "speedup": gain.median,
            "speedup_p20": gain.p20,
            "speedup_p80": gain.p80,
            "stored_heads_ratio": contest.ratio("stored_heads", "absorbed").median,
            "max_abs_difference": difference,
            "result_rms": exact.float().square().mean().sqrt().item(),  # a difference means little without it
            "latent_bytes": case.rows.numel() * element,
            "stored_heads_bytes": (case.keys.numel() + case.values.numel()) * element,
            "expansion_bytes": kv_len * self.num_heads * (NOPE_DIM + V_DIM) * element,
        }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The gain at the longest context, and the largest difference anywhere."""
        last = rows[-1]
        return {
            "kv_len": last["kv_len"],
            "max_abs_difference": max(row["max_abs_difference"] for row in rows),
            "smallest_result_rms": min(row["result_rms"] for row in rows),
            "speedup": last["speedup"],
            "speedup_p20": last["speedup_p20"],
            "speedup_p80": last["speedup_p80"],
            "stored_heads_ratio": last["stored_heads_ratio"],
            "latent_bytes": last["latent_bytes"],
            "bytes_ratio": last["stored_heads_bytes"] / last["latent_bytes"],
            **steadiness(rows, "absorbed", "expanded", "stored_heads"),
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Equal, faster, smaller, and how sure."""
        largest, size = summary["max_abs_difference"], f"{summary['smallest_result_rms']:.2g}"
        equal = Text(
            f"The results differ by {largest:.1e} at most, where their numbers are about {size} or more (root mean "
            "square).",
            f"结果最多相差 {largest:.1e}，而结果本身约为 {size} 或更大（均方根）。",
        )
        if not largest:
            equal = Text("The results are equal to the last bit.", "结果逐位相等。")
        gain, around = f"{summary['speedup']:.1f}", between(summary["speedup_p20"], summary["speedup_p80"])
        kv_len, fewer, doubt = summary["kv_len"], f"{summary['bytes_ratio']:.1f}", remark(summary)
        return Text(
            f"{equal.en} At {counted(kv_len, 'token')} expanding takes {gain} times as long as absorbing {around.en}; "
            f"storing every head would take {fewer} times the bytes. In brackets: 20th to 80th percentile.{doubt.en}",
            f"{equal.zh}在 {kv_len:,} 个 token 时，展开耗时是吸收的 {gain} 倍{around.zh}；"
            f"若为每个 head 都保存，字节数是潜变量的 {fewer} 倍。括号内为第 20 到第 80 百分位。{doubt.zh}",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """The expansions at 90 GFLOP/s: two products of the context by a matrix, over all rows and rounds."""
        flops = 2 * 2 * self.kv_len * self.latent_dim * self.num_heads * (NOPE_DIM + V_DIM)
        return 1 + (self.rounds + 4) * flops / 90e9 if bench_kind == "cpu" else None


class _Case:
    """One layer's random weights, cache and Query at one context, and the three ways to attend.

    The Query, the latents, Keys and Values have entries of about 1, as after a norm; results are averages of Values and
    shrink as the context grows.
    """

    def __init__(self, lab: MlaAbsorption, kv_len: int, device: torch.device):
        generator = torch.Generator().manual_seed(kv_len)
        dtype, heads, latent_dim = DTYPES[lab.dtype], lab.num_heads, lab.latent_dim

        def randn(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator).to(device, dtype)

        num_blocks = -(-kv_len // BLOCK_SIZE)
        self.cache = randn(num_blocks, BLOCK_SIZE, latent_dim + ROPE_DIM)
        self.table = torch.randperm(num_blocks, generator=generator).to(device, torch.int32)[None]
        self.kv_lens = torch.tensor([kv_len], dtype=torch.int32, device=device)
        self.q_nope, self.q_rope = randn(1, heads, NOPE_DIM), randn(1, heads, ROPE_DIM)
        self.w_uk = randn(heads, NOPE_DIM, latent_dim) * latent_dim**-0.5
        self.w_uv = randn(heads, V_DIM, latent_dim) * latent_dim**-0.5
        self.scale = (NOPE_DIM + ROPE_DIM) ** -0.5
        self.rows = self.cache[self.table[0].long()].flatten(0, 1)[:kv_len]
        latents, rope = self.rows.split((latent_dim, ROPE_DIM), 1)
        keys = torch.einsum("tl,hnl->htn", latents, self.w_uk)
        self.keys = torch.cat((keys, rope.expand(heads, -1, -1)), 2)  # [heads, kv_len, NOPE_DIM + ROPE_DIM]
        self.values = torch.einsum("tl,hvl->htv", latents, self.w_uv).contiguous()

    def absorbed(self) -> Tensor:
        return mla_decode_absorbed(self.q_nope, self.q_rope, self.cache, self.table, self.kv_lens, self.w_uk, self.w_uv)

    def expanded(self) -> Tensor:
        return mla_decode_expanded(self.q_nope, self.q_rope, self.cache, self.table, self.kv_lens, self.w_uk, self.w_uv)

    def stored_heads(self) -> Tensor:
        """Plain multi-head attention over the expanded Keys and Values, kept in one piece."""
        query = torch.cat((self.q_nope, self.q_rope), 2)[0, :, :, None] * self.scale
        scores = torch.bmm(self.keys, query)[..., 0]
        weights = scores.float().softmax(1).to(scores.dtype)
        return torch.bmm(weights[:, None], self.values)[:, 0][None]


def _implementation(bench: Bench) -> str:
    absorbed = "Triton kernel" if bench.kind == "cuda" else "grouped torch matmul"
    return f"absorbed: {absorbed} over pages; expanded: torch matmul over pages; stored heads: torch matmul"
