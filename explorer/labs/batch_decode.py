"""Why servers batch: several requests share one read of the weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.engine.generate import prefill
from explorer.engine.graphs import DecodeStepper
from explorer.engine.model import Model
from explorer.engine.sampler import Sampler, SamplingParams
from explorer.labs._workload import prompt_tokens
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text


@LABS.register
@dataclass(frozen=True)
class BatchDecode(Lab):
    """Tokens a second for 1, 2, 4, ... requests, each against one request in the same run."""

    name: ClassVar[str] = "batch-decode"
    page: ClassVar[str] = "engine"
    title: ClassVar[Text] = Text("What does a batch gain?", "batch 能带来多少收益？")
    question: ClassVar[Text] = Text(
        "When several requests decode together, how many tokens a second do they get in all, against one alone?",
        "多个请求一起 decode 时，每秒总共生成多少 token？与单个请求相比如何？",
    )
    expect: ClassVar[Text] = Text(
        "The weights are read once for the whole batch, so tokens a second rise almost with the batch, until "
        "arithmetic and the caches' own reads take over: each request still reads its own Keys and Values.",
        "整个 batch 只需读一次权重，所以每秒 token 数几乎随 batch 等比上升，直到算力以及各请求读取自身缓存的开销"
        "占了上风：每个请求仍要读自己的 Key 与 Value。",
    )
    source: ClassVar[str] = "greedy, equal contexts, contiguous store"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("batch", "", Origin.COMPUTED),
        Column("step_ms", "ms", Origin.MEASURED),
        Column("step_p20_ms", "ms", Origin.MEASURED),
        Column("step_p80_ms", "ms", Origin.MEASURED),
        Column("tokens_per_s", "tokens/s", Origin.MEASURED),
        Column("ratio_to_one", "x", Origin.MEASURED),
        Column("ratio_p20", "x", Origin.MEASURED),
        Column("ratio_p80", "x", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "batch": Text("Requests", "请求数"),
        "step_ms": Text("One step", "一步"),
        "step_p20_ms": Text("p20", "p20"),
        "step_p80_ms": Text("p80", "p80"),
        "tokens_per_s": Text("All tokens", "总 token 速率"),
        "ratio_to_one": Text("Against one request", "相对单个请求"),
        "ratio_p20": Text("p20", "p20"),
        "ratio_p80": Text("p80", "p80"),
    }
    chart: ClassVar[Chart | None] = Chart(x="batch", y=("tokens_per_s",), log_x=True)

    context_len: int = param(
        128, Text("Context of each", "各自的上下文"), minimum=16, maximum=2048, step=16, unit="tokens"
    )
    max_batch: int = param(16, Text("Most requests", "最多请求数"), choices=(2, 4, 8, 16, 32))
    rounds: int = param(7, Text("Rounds", "轮数"), minimum=3, maximum=31, step=2)
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=("bf16", "fp32"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each batch size, doubling."""
        model = bench.model(self.dtype)
        batches = [2**i for i in range(1, self.max_batch.bit_length())]
        need = (self.max_batch + 1) * (self.context_len + 1) * model.config.cache_bytes_per_token(4)
        bench.need_bytes(need, Text("the caches", "缓存"))
        one = _steps(bench, model, 1, self.context_len)
        for done, batch in enumerate(batches):
            yield Progress(done, len(batches), Text(f"{batch} requests", f"{batch} 个请求"))
            many = _steps(bench, model, batch, self.context_len)
            contest = bench.rivals({"one": one, "many": many}, warmup=2, repeats=self.rounds)
            steps = {1: contest.timings["one"], batch: contest.timings["many"]}
            pairs = contest.ratio("one", "many")
            for size in [1, batch] if done == 0 else [batch]:
                yield {
                    "batch": size,
                    "step_ms": steps[size].median_s * 1e3,
                    "step_p20_ms": steps[size].p20_s * 1e3,
                    "step_p80_ms": steps[size].p80_s * 1e3,
                    "tokens_per_s": size / steps[size].median_s,
                    "ratio_to_one": size * pairs.median if size > 1 else 1.0,
                    "ratio_p20": size * pairs.p20 if size > 1 else 1.0,
                    "ratio_p80": size * pairs.p80 if size > 1 else 1.0,
                }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The gain of 16 requests where they were run, and of the largest batch."""
        by_batch = {row["batch"]: row["ratio_to_one"] for row in rows}
        return {
            "ratio_16_to_1": by_batch.get(16),
            "largest_batch": rows[-1]["batch"],
            "ratio_of_largest": rows[-1]["ratio_to_one"],
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """The gain of the largest batch."""
        batch, ratio = summary["largest_batch"], f"{summary['ratio_of_largest']:.1f}"
        return Text(
            f"{batch} requests together get {ratio} times the tokens a second of one request alone.",
            f"{batch} 个请求一起 decode，每秒 token 数是单个请求的 {ratio} 倍。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """The prefills (2 ms a token) and the steps."""
        return 2 + 2 * self.max_batch * self.context_len * 0.002 + self.rounds * 0.4 if bench_kind == "cpu" else None


def _steps(bench: Bench, model: Model, batch: int, context_len: int) -> Callable[[], None]:
    """One decode step of `batch` filled sequences, undone afterwards so that each step is the same."""
    store, seqs = model.contiguous_store(context_len + 1, batch), list(range(batch))
    prompts = {seq: prompt_tokens(model, context_len, start=7 * seq) for seq in seqs}
    for _ in prefill(model, store, prompts):
        bench.check()
    stepper, sampler = DecodeStepper(model.decoder, store), Sampler(SamplingParams(), model.device)
    bench.note(implementation=f"{model.implementation}; {store.implementation}; {stepper.implementation}")
    tokens = [prompts[seq][-1] for seq in seqs]

    def step() -> None:
        sampler(stepper(seqs, tokens)).tolist()
        for seq in seqs:
            store.truncate(seq, context_len)

    return step
