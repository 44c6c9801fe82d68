"""How fast is decode here, against transformers, and against what the memory allows?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.engine.generate import prefill
from explorer.engine.graphs import DecodeStepper
from explorer.engine.model import DTYPES, Model
from explorer.engine.sampler import Sampler, SamplingParams
from explorer.labs._workload import Rival, prompt_tokens
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.measuring.timers import Contest
from explorer.params import param
from explorer.text import Text

FIRST_CONTEXT = 128


@LABS.register
@dataclass(frozen=True)
class DecodeSpeed(Lab):
    """Time for one token at growing contexts, the two engines in turn."""

    name: ClassVar[str] = "decode-speed"
    page: ClassVar[str] = "engine"
    title: ClassVar[Text] = Text("How fast is one token?", "生成一个 token 有多快？")
    question: ClassVar[Text] = Text(
        "The same weights, dtype and threads: how long does one token take here and in transformers' generate, and how "
        "close does it come to the speed at which this machine can copy memory?",
        "同样的权重、数据类型和线程数：在本引擎与 transformers 的 generate 中，生成一个 token 各需多久？"
        "距离本机拷贝内存的速度还有多远？",
    )
    expect: ClassVar[Text] = Text(
        "One token reads every weight once and every cached Key and Value once, so the bytes over the time should come "
        "near the copy speed. transformers falls behind as the context grows, because it expands and copies the cache "
        "at each step. A busy machine shows in the spread.",
        "生成一个 token 要把全部权重、全部已缓存的 Key 与 Value 各读一遍，所以“字节数 ÷ 时间”应接近内存拷贝速度。"
        "上下文越长，transformers 落后越多，因为它每一步都要展开并复制缓存。机器繁忙时，离散程度会变大。",
    )
    source: ClassVar[str] = "transformers generate, DynamicCache, SDPA; greedy, one sequence"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("context_len", "tokens", Origin.COMPUTED),
        Column("engine_ms", "ms", Origin.MEASURED),
        Column("engine_p20_ms", "ms", Origin.MEASURED),
        Column("engine_p80_ms", "ms", Origin.MEASURED),
        Column("transformers_ms", "ms", Origin.MEASURED),
        Column("transformers_p20_ms", "ms", Origin.MEASURED),
        Column("transformers_p80_ms", "ms", Origin.MEASURED),
        Column("ratio", "x", Origin.MEASURED),
        Column("ratio_p20", "x", Origin.MEASURED),
        Column("ratio_p80", "x", Origin.MEASURED),
        Column("bytes_read", "bytes", Origin.COMPUTED),
        Column("achieved_gb_per_s", "GB/s", Origin.MEASURED),
        Column("copy_gb_per_s", "GB/s", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "context_len": Text("Context", "上下文"),
        "engine_ms": Text("This engine", "本引擎"),
        "engine_p20_ms": Text("p20", "p20"),
        "engine_p80_ms": Text("p80", "p80"),
        "transformers_ms": Text("transformers", "transformers"),
        "transformers_p20_ms": Text("p20", "p20"),
        "transformers_p80_ms": Text("p80", "p80"),
        "ratio": Text("Ratio", "倍数"),
        "ratio_p20": Text("p20", "p20"),
        "ratio_p80": Text("p80", "p80"),
        "bytes_read": Text("Bytes read", "读取字节"),
        "achieved_gb_per_s": Text("Read speed", "读取速度"),
        "copy_gb_per_s": Text("Copy speed, read + write", "拷贝速度（读 + 写）"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="context_len",
        y=("transformers_ms", "engine_ms"),
        log_x=True,
        low={"engine_ms": "engine_p20_ms", "transformers_ms": "transformers_p20_ms"},
        high={"engine_ms": "engine_p80_ms", "transformers_ms": "transformers_p80_ms"},
    )

    context_len: int = param(
        512, Text("Longest context", "最长上下文"), minimum=16, maximum=8000, step=1, unit="tokens"
    )
    new_tokens: int = param(8, Text("Tokens in a round", "每轮生成"), minimum=1, maximum=64, step=1, unit="tokens")
    rounds: int = param(7, Text("Rounds", "轮数"), minimum=3, maximum=31, step=2)
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=("bf16", "fp32"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each context length, four times the one before."""
        model = bench.model(self.dtype)
        contexts = _contexts(self.context_len)
        yield Progress(
            0, len(contexts) + 1, Text("transformers loads the same weights", "transformers 正在加载同一份权重")
        )
        rival, ids = Rival(model), prompt_tokens(model, self.context_len)
        for done, context in enumerate(contexts):
            now = Text(f"{context:,} tokens of context", f"上下文 {context:,} 个 token")
            yield Progress(done + 1, len(contexts) + 1, now)
            contest = self._contest(bench, model, rival, ids[:context])
            yield self._row(model, context, contest) | {"copy_gb_per_s": bench.copy_gb_per_s()}

    def _contest(self, bench: Bench, model: Model, rival: Rival, ids: list[int]) -> Contest:
        bench.check()
        rival.extend_to(ids)
        store = model.contiguous_store(len(ids) + self.new_tokens)
        for _ in prefill(model, store, {0: ids[:-1]}):
            bench.check()
        stepper, sampler = DecodeStepper(model.decoder, store), Sampler(SamplingParams(), model.device)
        bench.note(implementation=f"{model.implementation}; {store.implementation}; {stepper.implementation}")

        def engine() -> list[int]:
            token_ids = [ids[-1]]
            for _ in range(self.new_tokens):
                token_ids.append(int(sampler(stepper([0], token_ids[-1:]))))
            store.truncate(0, len(ids) - 1)
            return token_ids

        ways = {"engine": engine, "transformers": lambda: rival.continue_greedily(self.new_tokens)}
        return bench.rivals(ways, warmup=1, repeats=self.rounds)

    def _row(self, model: Model, context: int, contest: Contest) -> Row:
        ours = contest.timings["engine"].per(self.new_tokens)
        theirs = contest.timings["transformers"].per(self.new_tokens)
        ratio = contest.ratio("transformers", "engine")
        # The tokens of a round see context, context + 1, ...: the middle one stands for them.
        kv_len = context + (self.new_tokens - 1) / 2
        bytes_read = round(_weight_bytes_read(model) + kv_len * _cache_bytes(model))
        return {
            "context_len": context,
            "engine_ms": ours.median_s * 1e3,
            "engine_p20_ms": ours.p20_s * 1e3,
            "engine_p80_ms": ours.p80_s * 1e3,
            "transformers_ms": theirs.median_s * 1e3,
            "transformers_p20_ms": theirs.p20_s * 1e3,
            "transformers_p80_ms": theirs.p80_s * 1e3,
            "ratio": ratio.median,
            "ratio_p20": ratio.p20,
            "ratio_p80": ratio.p80,
            "bytes_read": bytes_read,
            "achieved_gb_per_s": bytes_read / ours.median_s / 1e9,
        }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The longest context's figures."""
        last = rows[-1]
        return {
            "context_len": last["context_len"],
            "tokens_per_s": 1e3 / last["engine_ms"],
            "transformers_tokens_per_s": 1e3 / last["transformers_ms"],
            "ratio": last["ratio"],
            "ratio_p20": last["ratio_p20"],
            "ratio_p80": last["ratio_p80"],
            "bytes_read_per_token": last["bytes_read"],
            "achieved_gb_per_s": last["achieved_gb_per_s"],
            "copy_gb_per_s": last["copy_gb_per_s"],
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """The ratio with its spread, and the speed of reading beside that of copying."""
        ratio, low, high = (f"{summary[name]:.2f}" for name in ("ratio", "ratio_p20", "ratio_p80"))
        context, rate = f"{summary['context_len']:,}", f"{summary['tokens_per_s']:.1f}"
        read, copy = f"{summary['achieved_gb_per_s']:.1f}", f"{summary['copy_gb_per_s']:.1f}"
        return Text(
            f"At {context} tokens of context: {rate} tokens/s here, {ratio} times transformers "
            f"(p20 {low}, p80 {high}). A step reads {read} GB/s; a plain copy moves {copy} GB/s.",
            f"上下文为 {context} 个 token 时：本引擎每秒 {rate} 个 token，是 transformers 的 {ratio} 倍"
            f"（p20 {low}，p80 {high}）。一步的读取速度为 {read} GB/s；单纯拷贝为 {copy} GB/s。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Two prefills and the rounds."""
        steps = (self.rounds + 1) * self.new_tokens * len(_contexts(self.context_len)) * 0.07
        return 3 + self.context_len * 0.004 + steps if bench_kind == "cpu" else None


def _contexts(last: int) -> list[int]:
    lengths = []
    length = FIRST_CONTEXT
    while length < last:
        lengths.append(length)
        length *= 4
    return [*lengths, last]


def _weight_bytes_read(model: Model) -> int:
    """Every weight once. An embedding apart from the head is only looked up, one row a token."""
    config = model.config
    row = config.hidden_size * DTYPES[model.dtype].itemsize
    return model.weight_bytes if config.tie_embeddings else model.weight_bytes - (config.vocab_size - 1) * row


def _cache_bytes(model: Model) -> int:
    return model.config.cache_bytes_per_token(DTYPES[model.dtype].itemsize)
