"""Fast labs for the tests of whatever runs labs. They take no model."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from explorer.labs.base import Chart, Lab, Progress
from explorer.measuring.record import Column, Origin, Row
from explorer.params import param
from explorer.text import Text

WORDS = Text("toy", "示例")


@dataclass(frozen=True)
class ToyLab(Lab):
    """Sums numbers, slowly if asked to."""

    name: ClassVar[str] = "toy-sum"
    page: ClassVar[str] = "attention"
    title: ClassVar[Text] = Text("Toy sum", "示例求和")
    question: ClassVar[Text] = Text("How long does a sum take?", "求和要多久？")
    expect: ClassVar[Text] = Text("More numbers take longer.", "数越多越慢。")
    source: ClassVar[str] = "none, a test"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("count", "numbers", Origin.COMPUTED),
        Column("sum_ms", "ms", Origin.MEASURED),
        Column("sum_p20_ms", "ms", Origin.MEASURED),
        Column("sum_p80_ms", "ms", Origin.MEASURED),
    )
    column_titles: ClassVar[dict[str, Text]] = {
        "count": Text("Numbers", "个数"),
        "sum_ms": Text("Time", "时间"),
        "sum_p20_ms": Text("Time, p20", "时间（p20）"),
        "sum_p80_ms": Text("Time, p80", "时间（p80）"),
    }
    chart: ClassVar[Chart | None] = Chart(
        x="count", y=("sum_ms",), log_x=True, low={"sum_ms": "sum_p20_ms"}, high={"sum_ms": "sum_p80_ms"}
    )
    needs_model: ClassVar[bool] = False

    rows: int = param(3, Text("Rows", "行数"), minimum=1, maximum=500, step=1, unit="rows")
    pause_s: float = param(0.0, Text("Pause", "停顿"), minimum=0.0, maximum=60.0, step=0.1, unit="s")
    mode: str = param("plain", Text("Mode", "方式"), choices=("plain", "bad-row", "fault", "memory", "deaf"))
    loud: bool = param(False, Text("Loud", "大声"), help=Text("Says more.", "多说一些。"))
    label: str = param("x", Text("Label", "标签"), max_length=20)

    def run(self, bench: Any) -> Iterator[Row | Progress]:
        bench.note(implementation="torch.sum")
        for index in range(self.rows):
            yield Progress(index, self.rows, Text(f"row {index + 1}", f"第 {index + 1} 行"))
            self._misbehave()
            ends_at = time.monotonic() + self.pause_s
            while time.monotonic() < ends_at:
                if self.mode != "deaf":
                    bench.check()
                time.sleep(0.01)
            numbers = torch.ones(2**index if index < 12 else 4096)
            timing = bench.time(numbers.sum, repeats=3)
            row = {"count": numbers.numel(), "sum_ms": timing.median_s * 1e3}
            row |= {"sum_p20_ms": timing.p20_s * 1e3, "sum_p80_ms": timing.p80_s * 1e3}
            if self.mode == "bad-row":
                row["surprise"] = 1
            yield row

    def _misbehave(self) -> None:
        if self.mode == "fault":
            raise KeyError("/secret/path/of/the/machine")
        if self.mode == "memory":
            torch.empty(1 << 60, dtype=torch.uint8)

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        return {"numbers": sum(row["count"] for row in rows)}

    def expected_seconds(self, bench_kind: str) -> float | None:
        return self.rows * self.pause_s + 0.1
