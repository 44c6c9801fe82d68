"""The benchmark suite: which labs, at which settings, and which number of each is the ratio against which baseline."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Benchmark:
    """One line of the suite's table.

    Attributes:
        lab: the lab's name.
        value: the summary's entry that is shown; its spread is `<value>_p20` and `<value>_p80` where the lab gives it.
        baseline: what it is measured against.
        settings: the lab's parameters that differ from their defaults.
        quick: further ones for `--quick`, or None to leave the line out then.
        at_least: the bar on a CPU (on a GPU for a line that needs one), if the larger the better.
        at_most: the bar, if the smaller the better.
        needs_gpu: only means something on a GPU.
    """

    lab: str
    value: str
    baseline: str
    settings: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] | None = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    needs_gpu: bool = False

    def met(self, value: float) -> bool | None:
        """Whether the bar is met; None without one."""
        if self.at_least is not None:
            return value >= self.at_least
        return value <= self.at_most if self.at_most is not None else None

    def bar(self) -> str | None:
        """The bar in words."""
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else None


SUITE: tuple[Benchmark, ...] = (
    Benchmark("engine-parity", "max_abs_difference", "transformers' logits, fp32", at_most=1e-3),
    Benchmark("cache-bytes", "difference_bytes", "the formula", at_most=0),
    Benchmark(
        "cache-vs-recompute",
        "speedup_at_last",
        "the whole prompt recomputed for each token",
        quick={"max_context": 256, "new_tokens": 3},
    ),
    Benchmark(
        "decode-speed", "ratio", "transformers generate, 128 tokens of context", {"context_len": 128}, at_least=1.4
    ),
    Benchmark(
        "decode-speed",
        "ratio",
        "transformers generate, 2,048 tokens of context",
        {"context_len": 2048},
        None,
        at_least=2.5,
    ),
    Benchmark("batch-decode", "ratio_16_to_1", "one request at a time, tokens/s", quick=None, at_least=6),
    Benchmark(
        "paged-attention",
        "time_ratio",
        "the same on contiguous rows",
        {"kv_len": 2048, "batch": 8, "block_size": 16},
        quick={"rounds": 9},
        at_most=1.10,
    ),
    Benchmark("mla-absorption", "speedup", "keys and values expanded in each step", {"kv_len": 2048}, at_least=1),
    Benchmark("mla-absorption", "max_abs_difference", "keys and values expanded", {"kv_len": 512}, at_most=1e-3),
    Benchmark("flash-attention", "naive_peak_memory_slope", "1 is linear", quick=None, at_least=1.8),
    Benchmark("flash-attention", "flash_peak_memory_slope", "1 is linear", quick=None, at_most=1.1),
    Benchmark("heads", "time_ratio_mha_to_mqa", "one KV head for all 32 Query heads; 32 times the bytes"),
    Benchmark(
        "kernel-speed",
        "share_of_copy",
        "the measured copy",
        {"kernel": "paged-decode", "batch": 64, "context": 8192},
        at_least=0.85,
        needs_gpu=True,
    ),
    Benchmark(
        "kernel-speed",
        "time_ratio",
        "the fastest rival here, 32K tokens",
        {"kernel": "paged-decode", "batch": 64, "context": 32768},
        quick=None,
        needs_gpu=True,
    ),
    *(
        Benchmark(
            "kernel-speed", "time_ratio", "the fastest rival here", {"kernel": kernel, "context": 8192}, needs_gpu=True
        )
        for kernel in ("chunked-prefill", "flash-prefill")
    ),
    *(
        Benchmark(
            "kernel-speed",
            "share_of_copy",
            "the measured copy",
            {"kernel": kernel, "batch": 64, "context": 8192},
            needs_gpu=True,
        )
        for kernel in ("mla-decode", "kv-write", "block-copy")
    ),
)
