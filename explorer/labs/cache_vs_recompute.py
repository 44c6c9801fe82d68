"""What a cache saves: the time for one more token with it, and without it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from explorer.engine.generate import prefill
from explorer.engine.graphs import DecodeStepper
from explorer.engine.model import Model
from explorer.labs._workload import prompt_tokens
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text

FIRST_CONTEXT = 32


@LABS.register
@dataclass(frozen=True)
class CacheVsRecompute(Lab):
    """Generate a few tokens at growing contexts, once from the cache and once by reading everything again."""

    name: ClassVar[str] = "cache-vs-recompute"
    page: ClassVar[str] = "attention"
    title: ClassVar[Text] = Text("What does the cache save?", "缓存省下了什么？")
    question: ClassVar[Text] = Text(
        "How long does one more token take as the context grows, with the cache and without it, and is the text the "
        "same?",
        "随着上下文变长，多生成一个 token 要多久？有缓存和没有缓存各是多少？生成的文本一样吗？",
    )
    expect: ClassVar[Text] = Text(
        "Without a cache the time climbs with the context, because every old token is computed again. With it the time "
        "stays nearly flat at first: reading the weights dominates, and the cache read is small beside it. The tokens "
        "are identical in fp32; in bf16 the two ways round differently, and a near tie can fall either way.",
        "没有缓存时，耗时随上下文上升，因为每个旧 token 都要重算一遍。有缓存时，耗时起初几乎持平：主要开销是读取权重，"
        "读缓存只占一小部分。fp32 下两种方式生成的 token 完全相同；bf16 下两者舍入不同，遇到概率接近的候选时，"
        "可能选出不同的 token。",
    )
    source: ClassVar[str] = "chapter 3 of the guide; O(t d^2 + t^2 d) against O(d^2 + t d) for each new token"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("context_len", "tokens", Origin.COMPUTED),
        Column("with_cache_ms", "ms", Origin.MEASURED),
        Column("with_cache_p20_ms", "ms", Origin.MEASURED),
        Column("with_cache_p80_ms", "ms", Origin.MEASURED),
        Column("without_cache_ms", "ms", Origin.MEASURED),
        Column("without_cache_p20_ms", "ms", Origin.MEASURED),
        Column("without_cache_p80_ms", "ms", Origin.MEASURED),
        Column("speedup", "x", Origin.MEASURED),
        Column("tokens_equal", "", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "context_len": Text("Context", "上下文"),
        "with_cache_ms": Text("With cache", "有缓存"),
        "with_cache_p20_ms": Text("p20", "p20"),
        "with_cache_p80_ms": Text("p80", "p80"),
        "without_cache_ms": Text("Without", "无缓存"),
        "without_cache_p20_ms": Text("p20", "p20"),
        "without_cache_p80_ms": Text("p80", "p80"),
        "speedup": Text("Ratio", "倍数"),
        "tokens_equal": Text("Same tokens", "token 相同"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="context_len",
        y=("without_cache_ms", "with_cache_ms"),
        log_x=True,
        log_y=True,
        low={"with_cache_ms": "with_cache_p20_ms", "without_cache_ms": "without_cache_p20_ms"},
        high={"with_cache_ms": "with_cache_p80_ms", "without_cache_ms": "without_cache_p80_ms"},
    )

    max_context: int = param(
        512, Text("Longest context", "最长上下文"), minimum=64, maximum=4096, step=32, unit="tokens"
    )
    new_tokens: int = param(
        4, Text("Tokens at each context", "每个上下文生成"), minimum=2, maximum=32, step=1, unit="tokens"
    )
    dtype: str = param("fp32", Text("Element type", "元素类型"), choices=("fp32", "bf16"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each context length, doubling."""
        model = bench.model(self.dtype)
        bench.note(implementation=model.implementation, without_cache="whole context each time, head on the last row")
        contexts = _doubling(FIRST_CONTEXT, self.max_context)
        ids = prompt_tokens(model, self.max_context)
        for done, context in enumerate(contexts):
            now = Text(f"{context:,} tokens of context", f"上下文 {context:,} 个 token")
            yield Progress(done, len(contexts), now)
            cached, fresh = _Cached(bench, model, ids[:context], self.new_tokens), _Fresh(model, ids[:context])
            ways = {"with": cached.step, "without": fresh.step}
            contest = bench.rivals(ways, warmup=1, repeats=self.new_tokens)
            kept, again = contest.timings["with"], contest.timings["without"]
            yield {
                "context_len": context,
                "with_cache_ms": kept.median_s * 1e3,
                "with_cache_p20_ms": kept.p20_s * 1e3,
                "with_cache_p80_ms": kept.p80_s * 1e3,
                "without_cache_ms": again.median_s * 1e3,
                "without_cache_p20_ms": again.p20_s * 1e3,
                "without_cache_p80_ms": again.p80_s * 1e3,
                "speedup": contest.ratio("without", "with").median,
                "tokens_equal": cached.token_ids == fresh.token_ids,
            }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The ratio at the longest context, and whether the text ever differed."""
        return {
            "speedup_at_last": rows[-1]["speedup"],
            "context_at_last": rows[-1]["context_len"],
            "tokens_equal": all(row["tokens_equal"] for row in rows),
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """The ratio at the longest context, and whether the text is the same."""
        ratio, context = f"{summary['speedup_at_last']:.1f}", f"{summary['context_at_last']:,}"
        same = summary["tokens_equal"]
        return Text(
            f"At {context} tokens of context one more token takes {ratio} times as long without the cache. The tokens "
            + ("are the same." if same else "are not all the same."),
            f"上下文为 {context} 个 token 时，不用缓存生成一个 token 的耗时是用缓存的 {ratio} 倍。两种方式生成的 token"
            + ("完全相同。" if same else "不完全相同。"),
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Reading everything again dominates: about 4 ms for each token in fp32, half of that in bf16."""
        each = 0.004 if self.dtype == "fp32" else 0.002
        return 3 + 2 * self.max_context * each * (self.new_tokens + 2) if bench_kind == "cpu" else None


def _doubling(first: int, last: int) -> list[int]:
    lengths = [first]
    while lengths[-1] * 2 < last:
        lengths.append(lengths[-1] * 2)
    return [*lengths, last] if last > lengths[-1] else lengths


class _Cached:
    """Greedy generation that computes the newest token only. The last prompt token is the first step's input."""

    def __init__(self, bench: Bench, model: Model, ids: list[int], new_tokens: int):
        store = model.contiguous_store(len(ids) + new_tokens + 1)
        for _ in prefill(model, store, {0: ids[:-1]}):
            bench.check()
        self.stepper, self.token_ids = DecodeStepper(model.decoder, store), [ids[-1]]

    def step(self) -> None:
        """One more token."""
        self.token_ids.append(int(self.stepper([0], [self.token_ids[-1]]).argmax()))


@dataclass
class _Fresh:
    """Greedy generation that computes the whole context for every token."""

    model: Model
    ids: list[int]
    token_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token_ids = [self.ids[-1]]

    def step(self) -> None:
        """One more token."""
        ids = [*self.ids[:-1], *self.token_ids]
        store = self.model.contiguous_store(len(ids))
        step = store.begin([0], [len(ids)])
        logits = self.model.decoder.forward(torch.tensor(ids, device=self.model.device), step, store)
        self.token_ids.append(int(logits.argmax()))
