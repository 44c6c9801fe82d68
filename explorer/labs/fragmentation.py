"""How much of the memory holds tokens: requests as the engine answers them, served with reservation and with blocks."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, ClassVar

from explorer.errors import InputError
from explorer.labs._requests import Request, answer, prompts
from explorer.labs._serving import Moment, serve_contiguous, serve_paged
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text

MAX_ROWS = 40
SCHEMES = ("contiguous", "paged")


@LABS.register
@dataclass(frozen=True)
class Fragmentation(Lab):
    """Measure a mix of lengths, then replay it on both allocators."""

    name: ClassVar[str] = "fragmentation"
    page: ClassVar[str] = "paged-attention"
    title: ClassVar[Text] = Text("How much of the memory holds tokens?", "显存里有多少真正装着 token？")
    question: ClassVar[Text] = Text(
        "The engine answers a queue of requests of mixed length. How much of the same memory holds tokens when each "
        "request reserves its longest possible length in one piece, and how much when blocks are handed out as it "
        "grows?",
        "让引擎回答一队长短不一的请求。同样大小的显存，若每个请求都按最大长度预留一整段，装着 token 的部分有多少？若"
        "随增长按需分配块，又有多少？",
    )
    expect: ClassVar[Text] = Text(
        "The lengths are measured: the model answers every prompt until it ends by itself or is cut off. Then the "
        "queue is served twice from the same number of slots, by the engine's own block pool and by first-fit "
        "reservation, step by step. Reserved rows stay mostly empty, so few requests run at once and the queue takes "
        "more steps. Reserving only the prompt and the longest answer wastes less and leaves holes of many sizes. "
        "Blocks leave the tails of last blocks unfilled, at most block_size - 1 slots a request. The mix decides: "
        "answers that nearly always reach the maximum leave little to gain. Steps count tokens, not seconds: a "
        "larger batch makes a step slower. When blocks run out, the youngest request is sent back to the queue; when "
        "it returns, what it had is computed again, which is not counted here.",
        "长度是实测的：模型逐一回答提示词，直到自己结束或被截断。然后用同样多的槽位把这队请求服务两遍：一遍用引擎自己"
        "的块池，一遍用首次适配的整段预留，逐步推进。预留的整段大多空着，能同时运行的请求就少，整队要花更多步。若只预"
        "留“提示词 + 最长回答”，浪费会少些，但会留下大小不一的空洞。分块时只有末块的尾部空着，每个请求最多 "
        "block_size - 1 个槽位。结果取决于长度分布：若回答几乎总是写满上限，能省的就不多。步数数的是 token，不是秒："
        "batch 越大，每步越慢。块用完时，最晚来的请求退回队列；等它回来，已有的部分要重算，这些计算没有计入。",
    )
    source: ClassVar[str] = "Kwon et al. 2023 (vLLM), arXiv:2309.06180, sections 3.1 and 4.2, figure 2"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("step", "steps", Origin.COMPUTED),
        *(Column(name, "%", Origin.MEASURED) for name in ("contiguous_filled", "paged_filled")),
        *(Column(name, "%", Origin.MEASURED) for name in ("reserved", "internal", "external", "paged_unfilled")),
        *(
            Column(f"{scheme}_{what}", "", Origin.MEASURED)
            for what in ("running", "waiting")
            for scheme in SCHEMES
        ),
    )  # fmt: skip
    column_titles: ClassVar[dict[str, Text]] = {
        "step": Text("Step", "步"),
        "contiguous_filled": Text("Holds tokens, contiguous", "装着 token（连续）"),
        "paged_filled": Text("Holds tokens, blocks", "装着 token（分块）"),
        "reserved": Text("Reserved, filled later", "预留，之后会用到"),
        "internal": Text("Reserved, never filled", "预留，永远用不到"),
        "external": Text("Holes too small", "过小的空洞"),
        "paged_unfilled": Text("Tails of last blocks", "末块的尾部"),
        "contiguous_running": Text("Running, contiguous", "运行中（连续）"),
        "paged_running": Text("Running, blocks", "运行中（分块）"),
        "contiguous_waiting": Text("Waiting, contiguous", "排队（连续）"),
        "paged_waiting": Text("Waiting, blocks", "排队（分块）"),
    }
    chart: ClassVar[Chart | None] = Chart(x="step", y=("contiguous_filled", "paged_filled"))

    requests: int = param(24, Text("Requests", "请求数"), minimum=4, maximum=96, step=1)
    max_new_tokens: int = param(
        128, Text("Longest answer", "回答的最大长度"), choices=(32, 64, 128, 192, 256, 512), unit="tokens"
    )
    num_slots: int = param(
        4096, Text("Memory", "显存容量"), choices=(2048, 4096, 8192, 16384), unit="tokens",
        help=Text("In tokens, the same for both.", "以 token 计，两种方案相同。"),
    )  # fmt: skip
    reserve: str = param(
        "context", Text("Reserved for each", "每个请求预留"), choices=("context", "answer"),
        help=Text(
            "context: the whole context window. answer: the request's own prompt and the longest answer.",
            "context：整个上下文窗口。answer：该请求的提示词加上回答的最大长度。",
        ),
    )  # fmt: skip
    max_len: int = param(
        1024, Text("Context window", "上下文窗口"), choices=(512, 1024, 2048, 4096), unit="tokens",
        help=Text("The longest prompt and its answer must fit.", "最长的提示词加上回答必须放得下。"),
    )  # fmt: skip
    block_size: int = param(16, Text("Block size", "块大小"), choices=(8, 16, 32, 64, 128, 256), unit="tokens")
    seed: int = param(0, Text("Seed", "随机种子"), minimum=0, maximum=999, step=1)

    def __post_init__(self) -> None:
        """Check each parameter, and that one reservation fits."""
        super().__post_init__()
        if self.max_len > self.num_slots:
            raise InputError(
                f"context window max_len={self.max_len}: expected at most num_slots={self.num_slots}, the memory",
                f"上下文窗口 max_len={self.max_len}：应不超过显存容量 num_slots={self.num_slots}",
            )

    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """First the answers, then about 40 rows, each the mean of some steps."""
        mix = yield from self._measure(bench)
        whole = self.reserve == "context"
        reserved = [self.max_len if whole else request.prompt + self.max_new_tokens for request in mix]
        served: dict[str, list[Moment]] = {
            "contiguous": list(serve_contiguous(mix, self.num_slots, reserved)),
            "paged": list(serve_paged(mix, self.num_slots // self.block_size, self.block_size)),
        }
        bench.note(
            prompt_tokens=[request.prompt for request in mix],
            answer_tokens=[request.output for request in mix],
            sent_back=served["paged"][-1].preempted,
            counted="slots in the allocators themselves after every step; a row is the mean of its steps",
        )
        lengths = [len(moments) for moments in served.values()]
        every = -(-max(lengths) // MAX_ROWS)
        ends = sorted({*range(every, max(lengths), every), *lengths})
        for start, end in pairwise([0, *ends]):
            bench.check()
            yield self._row(served, start, end)

    def _measure(self, bench: Bench) -> Generator[Progress, None, list[Request]]:
        model = bench.model()
        asked = prompts(model, self.requests)
        longest = max(map(len, asked)) + self.max_new_tokens
        if longest > self.max_len:
            raise InputError(
                f"max_len={self.max_len}: the longest request may take {longest} tokens; choose a longer window",
                f"max_len={self.max_len}：最长的请求可能需要 {longest} 个 token；请选更长的窗口",
            )
        bench.need_bytes(longest * len(asked) * model.config.cache_bytes_per_token(4), Text("the cache", "缓存"))
        bench.note(implementation=f"{model.implementation}; explorer.engine.block_pool and explorer.engine.reservation")
        lengths, written = [1] * len(asked), 0
        for seq, length in answer(model, asked, self.max_new_tokens, self.seed):
            bench.check()
            lengths[seq], written = length, written + 1
            if written % 100 == 0:
                text = Text(f"{written:,} tokens written", f"已生成 {written:,} 个 token")
                yield Progress(written, self.requests * self.max_new_tokens, text)
        return [Request(len(ids), length) for ids, length in zip(asked, lengths, strict=True)]

    def _row(self, served: dict[str, list[Moment]], start: int, end: int) -> Row:
        """The mean of the steps from `start` to `end`, in percent of all slots; None for a scheme that is done."""
        row: Row = {column.name: None for column in self.columns} | {"step": end}
        parts = {scheme: moments[start:end] for scheme, moments in served.items()}
        for scheme, moments in parts.items():
            if moments:
                row[f"{scheme}_filled"] = self._share(moment.used for moment in moments)
                row[f"{scheme}_running"] = fmean(moment.running for moment in moments)
                row[f"{scheme}_waiting"] = moments[-1].waiting
        wastes = [moment.waste for moment in parts["contiguous"] if moment.waste is not None]
        if wastes:
            row["reserved"] = self._share(each.reserved for each in wastes)
            row["internal"] = self._share(each.internal for each in wastes)
            row["external"] = self._share(each.external for each in wastes)
        if parts["paged"]:
            row["paged_unfilled"] = self._share(moment.taken - moment.used for moment in parts["paged"])
        return row

    def _share(self, slots: Iterable[int]) -> float:
        return 100 * fmean(slots) / self.num_slots

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """Means over the rows in which requests were waiting (over all, if none ever was), and the steps in all."""
        found: dict[str, Any] = {}
        for scheme in SCHEMES:
            mine = [row for row in rows if row[f"{scheme}_filled"] is not None]
            full = [row for row in mine if row[f"{scheme}_waiting"]] or mine
            found[f"{scheme}_filled"] = _mean(full, f"{scheme}_filled")
            found[f"{scheme}_running"] = _mean(full, f"{scheme}_running")
            found[f"{scheme}_steps"] = mine[-1]["step"]
            found[f"{scheme}_waited"] = any(row[f"{scheme}_waiting"] for row in mine)
            for name in ("reserved", "internal", "external") if scheme == "contiguous" else ("paged_unfilled",):
                found[name] = _mean(full, name)
        return found

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """Both shares and both queues."""
        one, other = f"{summary['contiguous_filled']:.0f} %", f"{summary['paged_filled']:.0f} %"
        slow, fast = f"{summary['contiguous_steps']:,}", f"{summary['paged_steps']:,}"
        few, many = f"{summary['contiguous_running']:.1f}", f"{summary['paged_running']:.1f}"
        if not (summary["contiguous_waited"] or summary["paged_waited"]):
            return Text(
                f"Everything fits at once here: {one} of the memory held tokens with reservation, {other} with blocks. "
                "Choose more requests or less memory to see them wait.",
                f"这里所有请求都放得下：整段预留时 {one} 的显存装着 token，分块时为 {other}。"
                "增加请求或减少显存，才会看到排队。",
            )
        return Text(
            f"While requests were waiting, {one} of the memory held tokens with reservation and {other} with blocks; "
            f"{few} and {many} requests ran at once, and the queue was done after {slow} and {fast} steps.",
            f"有请求排队时，整段预留方案中 {one} 的显存装着 token，分块方案为 {other}；同时运行的请求"
            f"平均为 {few} 与 {many} 个，整队分别用了 {slow} 步与 {fast} 步。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Most answers are cut off; 300 tokens a second in large batches."""
        return 3 + self.requests * (0.8 * self.max_new_tokens + 60) / 300 if bench_kind == "cpu" else None


def _mean(rows: list[Row], name: str) -> float:
    return fmean(row[name] for row in rows)
