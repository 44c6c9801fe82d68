"""How many bytes does the cache hold? The formula, the tensors and the allocator, side by side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.engine.generate import prefill
from explorer.engine.model import DTYPES, Model
from explorer.engine.stores.base import KVStore
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore
from explorer.labs._workload import prompt_tokens
from explorer.labs.base import LABS, Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring import memory
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text


@LABS.register
@dataclass(frozen=True)
class CacheBytes(Lab):
    """Fill a contiguous and a paged store with a real prompt and count."""

    name: ClassVar[str] = "cache-bytes"
    page: ClassVar[str] = "attention"
    title: ClassVar[Text] = Text("Does the formula match the tensors?", "公式与张量对得上吗？")
    question: ClassVar[Text] = Text(
        "The model reads a prompt. How many bytes do the Key and Value tensors then hold, by formula, by their own "
        "count, and by the allocator's?",
        "让模型读入一段提示词，之后 Key 与 Value 张量占多少字节？分别看公式、张量自身与内存分配器的数字。",
    )
    expect: ClassVar[Text] = Text(
        "The contiguous store equals the formula to the byte. The paged store holds whole blocks: it is larger by "
        "exactly the unfilled slots of the last block, at most block_size - 1 tokens. A GPU's allocator also rounds "
        "each tensor up to 512 bytes.",
        "连续存储与公式逐字节相等。分页存储按整个 block 占用：多出的正好是最后一个 block 中尚未填入的槽位，"
        "最多 block_size - 1 个 token。在 GPU 上，分配器还会把每个张量向上取整到 512 字节。",
    )
    source: ClassVar[str] = "2 x layers x KV heads x head_dim x tokens x bytes per element; paging: arXiv:2309.06180"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("store", "", Origin.COMPUTED),
        Column("filled_tokens", "tokens", Origin.MEASURED),
        Column("formula_bytes", "bytes", Origin.COMPUTED),
        Column("stored_bytes", "bytes", Origin.MEASURED),
        Column("difference_bytes", "bytes", Origin.MEASURED),
        Column("unfilled_slots_bytes", "bytes", Origin.COMPUTED),
        Column("allocator_bytes", "bytes", Origin.MEASURED),
        Column("allocator_difference_bytes", "bytes", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "store": Text("Store", "存储方式"),
        "filled_tokens": Text("Slots that hold a Key", "存有 Key 的槽位"),
        "formula_bytes": Text("Formula", "公式"),
        "stored_bytes": Text("Tensors", "张量"),
        "difference_bytes": Text("Tensors - formula", "张量 − 公式"),
        "unfilled_slots_bytes": Text("Unfilled slots of the last block", "最后一个 block 的空槽"),
        "allocator_bytes": Text("Allocator", "分配器"),
        "allocator_difference_bytes": Text("Allocator - tensors", "分配器 − 张量"),
    }

    kv_len: int = param(
        1000, Text("Tokens in the cache", "缓存中的 token 数"), minimum=1, maximum=8192, step=1, unit="tokens"
    )
    block_size: int = param(16, Text("Block size", "block 大小"), minimum=1, maximum=256, step=1, unit="tokens")
    dtype: str = param("bf16", Text("Element type", "元素类型"), choices=("bf16", "fp32"))

    @torch.inference_mode()
    def run(self, bench: Bench) -> Iterator[Row | Progress]:
        """One row for each store."""
        model = bench.model(self.dtype)
        ids = prompt_tokens(model, self.kv_len)
        num_blocks = -(-self.kv_len // self.block_size)
        makers: dict[str, Callable[[], ContiguousStore | PagedStore]] = {
            "contiguous": lambda: model.contiguous_store(self.kv_len),
            "paged": lambda: model.paged_store(num_blocks, self.block_size),
        }
        formula = self.kv_len * model.config.cache_bytes_per_token(DTYPES[self.dtype].itemsize)
        for done, (name, make) in enumerate(makers.items()):
            yield Progress(done, 2, Text(f"the model reads the prompt, {name} store", f"模型正在读入提示词（{name}）"))
            bench.need_bytes(2 * formula, Text("the cache", "缓存"))
            store, allocated = memory.allocator_delta(make, bench.device)
            bench.note(allocator=allocated.source, implementation=model.implementation)
            _fill(bench, model, store, ids)
            tensors = memory.tensor_bytes((*store.keys, *store.values))
            yield {
                "store": name,
                "filled_tokens": _filled(store),
                "formula_bytes": formula,
                "stored_bytes": tensors,
                "difference_bytes": tensors - formula,
                "unfilled_slots_bytes": store.unfilled_bytes if isinstance(store, PagedStore) else 0,
                "allocator_bytes": allocated.net_bytes,
                "allocator_difference_bytes": allocated.net_bytes - tensors,
            }
            del store

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The contiguous store's figures, and what explains the paged one's."""
        plain, paged = rows
        return {
            "bytes_per_token": plain["stored_bytes"] // self.kv_len,
            "formula_bytes": plain["formula_bytes"],
            "stored_bytes": plain["stored_bytes"],
            "difference_bytes": plain["difference_bytes"],
            "paged_stored_bytes": paged["stored_bytes"],
            "paged_difference_bytes": paged["difference_bytes"],
            "paged_unfilled_slots_bytes": paged["unfilled_slots_bytes"],
        }

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """The difference, and what explains the paged store's."""
        plain, paged = summary["difference_bytes"], summary["paged_difference_bytes"]
        each, tail = summary["bytes_per_token"], summary["paged_unfilled_slots_bytes"]
        return Text(
            f"{each:,} B a token. Contiguous: tensors minus formula is {plain:,} B. Paged: {paged:,} B, of which "
            f"{tail:,} B are the unfilled slots of the last block.",
            f"每个 token {each:,} B。连续存储：张量减公式为 {plain:,} B。分页存储：{paged:,} B，"
            f"其中 {tail:,} B 是最后一个 block 的空槽。",
        )

    def expected_seconds(self, bench_kind: str) -> float | None:
        """The two prefills."""
        return 1 + 2 * self.kv_len * 0.002 if bench_kind == "cpu" else None


def _fill(bench: Bench, model: Model, store: KVStore, ids: list[int]) -> None:
    for _ in prefill(model, store, {0: ids}, chunk_len=256):
        bench.check()


def _filled(store: ContiguousStore | PagedStore) -> int:
    """Slots whose first-layer Key is not all zero: the tensors were zero when they were made."""
    return int(store.keys[0].ne(0).any(dim=-1).any(dim=1).sum())
