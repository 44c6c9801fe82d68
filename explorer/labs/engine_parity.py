"""Is this engine's arithmetic right? The same weights in transformers are the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.engine.generate import generate, prefill
from explorer.engine.model import Model
from explorer.engine.sampler import SamplingParams
from explorer.engine.stores.base import KVStore
from explorer.labs._workload import Rival, prompt_tokens
from explorer.labs.base import LABS, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text

CASES = ("whole prompt", "chunks", "decode", "paged")


@LABS.register
@dataclass(frozen=True)
class EngineParity(Lab):
    """Logits against transformers in fp32, then 64 greedy tokens."""

    name: ClassVar[str] = "engine-parity"
    page: ClassVar[str] = "engine"
    title: ClassVar[Text] = Text("Does this engine compute the same model?", "这个引擎算的是同一个模型吗？")
    question: ClassVar[Text] = Text(
        "The same weights, in float32, here and in transformers: how far apart are the logits, and do both write the "
        "same text?",
        "同一份权重，同为 float32，分别由本引擎和 transformers 计算：logits 相差多少？写出的文本是否一致？",
    )
    expect: ClassVar[Text] = Text(
        "Differences near 1e-4 or below: the order of additions differs, nothing else. The greedy tokens are equal.",
        "差值在 1e-4 上下或更小：只是加法次序不同，别无他因。贪心生成的 token 完全一致。",
    )
    source: ClassVar[str] = "transformers, AutoModelForCausalLM, same weights"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("case", "", Origin.COMPUTED),
        Column("tokens", "tokens", Origin.COMPUTED),
        Column("max_abs_difference", "", Origin.MEASURED),
        Column("largest_logit", "", Origin.MEASURED),
        Column("tokens_equal", "", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "case": Text("How the tokens arrive", "token 的送入方式"),
        "tokens": Text("Prompt", "提示词长度"),
        "max_abs_difference": Text("Largest difference of a logit", "logit 的最大差值"),
        "largest_logit": Text("Largest logit", "最大的 logit"),
        "tokens_equal": Text("Greedy tokens equal", "贪心 token 一致"),
    }

    prompt_len: int = param(96, Text("Prompt", "提示词长度"), minimum=2, maximum=1024, step=1, unit="tokens")
    new_tokens: int = param(64, Text("Greedy tokens", "贪心生成数"), minimum=1, maximum=256, step=1, unit="tokens")

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each way in which the tokens can arrive."""
        model = bench.model("fp32")
        bench.note(implementation=model.implementation)
        yield Progress(
            0, len(CASES) + 1, Text("transformers loads the same weights", "transformers 正在加载同一份权重")
        )
        rival = Rival(model)
        ids = prompt_tokens(model, self.prompt_len)
        bench.check()
        expected, text = rival.logits(ids), rival.greedy(ids, self.new_tokens)
        for done, case in enumerate(CASES):
            yield Progress(done + 1, len(CASES) + 1, Text(case, case))
            bench.check()
            logits = _logits(model, ids, case)
            store = model.paged_store(len(ids) + self.new_tokens, 16) if case == "paged" else None
            sampling = SamplingParams(max_new_tokens=self.new_tokens)
            ours = [token.token_id for token in generate(model, ids, sampling, store)]
            yield {
                "case": case,
                "tokens": self.prompt_len,
                "max_abs_difference": (logits - expected[-logits.shape[0] :]).abs().max().item(),
                "largest_logit": expected.abs().max().item(),
                "tokens_equal": ours == text,
            }

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The worst case counts."""
        return {
            "max_abs_difference": max(row["max_abs_difference"] for row in rows),
            "greedy_tokens_equal": all(row["tokens_equal"] for row in rows),
            "greedy_tokens": self.new_tokens,
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Both halves of the question."""
        difference, tokens = f"{summary['max_abs_difference']:.1e}", summary["greedy_tokens"]
        if summary["greedy_tokens_equal"]:
            same = Text(f"all {tokens} greedy tokens are equal", f"{tokens} 个贪心 token 全部相同")
            if tokens == 1:
                same = Text("the one greedy token is the same", "贪心生成的那个 token 也相同")
            return Text(
                f"No logit differs by more than {difference}, and {same.en}.",
                f"所有 logit 的差值都不超过 {difference}，{same.zh}。",
            )
        return Text(
            f"The greedy tokens differ; the largest difference of a logit is {difference}.",
            f"贪心 token 不一致；logit 的最大差值为 {difference}。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Mostly the oracle's loading and its text."""
        work = self.prompt_len * 0.01 + self.new_tokens * 5 * 0.05
        return 5 + work if bench_kind == "cpu" else None


def _logits(model: Model, ids: list[int], case: str) -> torch.Tensor:
    """Logits of all positions, or of as many last ones as the way of arriving gives."""
    if case == "paged":
        return _prefill_logits(model, model.paged_store(len(ids), 16), ids)
    store = model.contiguous_store(len(ids))
    if case == "whole prompt":
        step = store.begin([0], [len(ids)])
        return model.decoder.forward(torch.tensor(ids, device=model.device), step, store, range(len(ids)))
    if case == "chunks":
        return _prefill_logits(model, store, ids)
    rows = []
    for token in ids:
        step = store.begin([0], [1])
        rows.append(model.decoder.forward(torch.tensor([token], device=model.device), step, store))
    return torch.cat(rows)


def _prefill_logits(model: Model, store: KVStore, ids: list[int]) -> torch.Tensor:
    """The last position's logits after prefill in chunks of 29 tokens (a length that divides nothing)."""
    done = [logits[0] for logits in prefill(model, store, {0: ids}, chunk_len=29) if logits]
    return done[-1][None]
