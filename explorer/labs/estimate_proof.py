"""Is the estimate the truth? Every known architecture built thin, its cache filled and weighed, beside the formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from explorer.labs._words import counted
from explorer.labs.base import LABS, Chart, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.probing.architectures import ARCHITECTURES
from explorer.text import Text

if TYPE_CHECKING:
    from explorer.probing.proof import Proof, Subject

ALL = "all"


@LABS.register
@dataclass(frozen=True)
class EstimateProof(Lab):
    """Thin models of real geometry: prefill, decode, and count every byte of the cache."""

    name: ClassVar[str] = "estimate-proof"
    page: ClassVar[str] = "models"
    title: ClassVar[Text] = Text("Does the estimate equal a real cache?", "估算与真实缓存相等吗？")
    question: ClassVar[Text] = Text(
        "For each architecture: how many bytes does transformers' own cache hold, how many does the formula say, and "
        "is every byte between them accounted for?",
        "对 transformers 中的每种架构：它自己的缓存占多少字节，公式给出多少，两者之间的每个字节是否都有着落？",
    )
    expect: ClassVar[Text] = Text(
        "No unexplained byte. A difference comes from a named rule that predicts it exactly: a window of W holds W - 1 "
        "tokens between steps, a convolution keeps one input more than it needs, a compressor has a memory of its own. "
        "The model is thin: a few layers that show every kind, tiny MLPs, random weights; heads, dims, states and "
        "patterns are real. Windows longer than half the tokens are shortened, in the model and in the estimate.",
        "没有无法解释的字节。差值来自能精确预测它的具名规则：长度为 W 的窗口在两步之间只存 W - 1 个 token，"
        "卷积多存一个输入，压缩器有自己的存储。模型是“薄”的：只取能覆盖各类层的几层，MLP 极小，权重随机；"
        "头数、维度、状态和层的排列都是真的。超过 token 数一半的窗口会缩短，模型与估算同步缩短。",
    )
    source: ClassVar[str] = "transformers' own cache classes; spec of each layer from explorer/specs"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("model_type", "", Origin.COMPUTED),
        Column("kv_len", "tokens", Origin.COMPUTED),
        Column("layers", "", Origin.COMPUTED),
        Column("estimated_bytes", "bytes", Origin.COMPUTED),
        Column("real_bytes", "bytes", Origin.MEASURED),
        Column("difference_bytes", "bytes", Origin.MEASURED),
        Column("explained_bytes", "bytes", Origin.COMPUTED),
        Column("unexplained_bytes", "bytes", Origin.MEASURED),
        Column("holds", "", Origin.MEASURED),
        Column("explanation", "", Origin.COMPUTED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "model_type": Text("Architecture", "架构"),
        "kv_len": Text("Tokens seen", "已见 token"),
        "layers": Text("Layers built of all", "构建层数/总层数"),
        "estimated_bytes": Text("Formula", "公式"),
        "real_bytes": Text("Cache", "缓存"),
        "difference_bytes": Text("Cache - formula", "缓存 − 公式"),
        "explained_bytes": Text("Predicted by rules", "规则预测"),
        "unexplained_bytes": Text("Unexplained", "无法解释"),
        "holds": Text("Holds", "成立"),
        "explanation": Text("Rules that apply", "适用的规则"),
    }
    chart: ClassVar[Chart | None] = None
    needs_model: ClassVar[bool] = False

    architecture: str = param(ALL, Text("Architecture", "架构"), choices=(ALL, *ARCHITECTURES))
    kv_len: int = param(
        300,
        Text("Tokens", "token 数"),
        minimum=16,
        maximum=2048,
        step=1,
        unit="tokens",
        help=Text(
            "Weighed at a fifth of this and at all of it: before windows are full, and after.",
            "在五分之一处和全部处各称一次：窗口未满时与已满后。",
        ),
    )

    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """Two rows for each architecture."""
        from explorer.errors import InputError
        from explorer.probing import proof

        names = list(ARCHITECTURES) if self.architecture == ALL else [self.architecture]
        bench.note(implementation="transformers' own model and cache, CPU", dtype="bf16", weights="random")
        for done, name in enumerate(names):
            yield Progress(done, len(names), Text(f"building {name}", f"正在构建 {name}"))
            bench.check()
            try:
                made = proof.subject(ARCHITECTURES[name], longest_window=self.kv_len // 2)
            except InputError as error:
                yield _refused(name, self.kv_len, error)
                continue
            for kv_len in (self.kv_len // 5, self.kv_len):
                bench.check()
                yield _row(name, made, proof.prove(made, kv_len))
            del made

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """How many architectures hold, and which do not."""
        failed = sorted({row["model_type"] for row in rows if not row["holds"]})
        tried = {row["model_type"] for row in rows}
        return {
            "architectures": len(tried),
            "proven": len(tried) - len(failed),
            "exact_rows": sum(row["difference_bytes"] == 0 and row["holds"] for row in rows),
            "unexplained_bytes": sum(row["unexplained_bytes"] or 0 for row in rows),
            "failed": ", ".join(failed),
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """One sentence."""
        tried, failed = summary["architectures"], summary["failed"]
        if failed:
            return Text(
                f"Proven: {summary['proven']} of {counted(tried, 'architecture')}; not: {failed}.",
                f"{tried} 种架构中有 {summary['proven']} 种成立；未证明：{failed}。",
            )
        if tried == 1:
            return Text(
                "It holds: every byte of the cache comes from the formula or a named rule.",
                "成立：缓存的每个字节都来自公式或具名规则。",
            )
        return Text(
            f"All {tried} architectures hold: every byte of their caches comes from the formula or a named rule.",
            f"{tried} 种架构全部成立：缓存的每个字节都来自公式或具名规则。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """Most of it is building; the GPU is not used."""
        del bench_kind
        return 4 + (30 if self.architecture == ALL else 3) * max(1.0, self.kv_len / 400)


def _row(name: str, made: "Subject", found: "Proof") -> Row:
    return {
        "model_type": name,
        "kv_len": found.kv_len,
        "layers": f"{made.thin.num_layers}/{made.thin.real_num_layers}",
        "estimated_bytes": found.estimated_bytes,
        "real_bytes": found.real_bytes,
        "difference_bytes": found.difference_bytes,
        "explained_bytes": found.explained_bytes,
        "unexplained_bytes": found.unexplained_bytes,
        "holds": found.holds,
        "explanation": _explanation(made, found),
    }


def _explanation(made: "Subject", found: "Proof") -> str:
    parts = [f"{rule} {num_bytes:+,}" for rule, num_bytes in found.explained.items()]
    if found.missing_kinds:
        parts.append("the thin model's layers are not the real one's")
    parts += [f"{field} {real:,} -> {thin:,}" for field, (real, thin) in made.thin.scaled_windows.items()]
    return "; ".join(parts) or "equal"


def _refused(name: str, kv_len: int, error: Exception) -> Row:
    """A row for an architecture that the installed transformers, or no reader, can take: not proven, and why."""
    blank: Row = dict.fromkeys(column.name for column in EstimateProof.columns)
    return blank | {"model_type": name, "kv_len": kv_len, "holds": False, "explanation": str(error)}
