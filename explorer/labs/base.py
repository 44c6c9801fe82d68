"""What an experiment ("lab") is: a frozen value with its parameters, that yields rows when it is run.

Adding a lab is adding one file: its controls, its command line, its table and its figure follow from the class.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from explorer import params
from explorer.measuring.record import Column, Row
from explorer.registry import Registry
from explorer.text import Text

if TYPE_CHECKING:
    from explorer.labs.bench import Bench

LABS: Registry[type["Lab"]] = Registry("lab", "explorer.labs")


@dataclass(frozen=True)
class Progress:
    """Yielded between rows, so that a run can be watched and stopped.

    Attributes:
        done: steps finished.
        total: steps in all.
        text: what happens now.
    """

    done: int
    total: int
    text: Text


@dataclass(frozen=True)
class Chart:
    """How the rows are drawn.

    Attributes:
        x: the column on the horizontal axis.
        y: the columns drawn against it; all have one unit.
        kind: "line" or "bar".
        log_x: logarithmic (base 2) horizontal axis.
        log_y: logarithmic (base 10) vertical axis.
        low: for a column of `y`, the column with its lower spread (p20).
        high: for a column of `y`, the column with its upper spread (p80).
    """

    x: str
    y: tuple[str, ...]
    kind: str = "line"
    log_x: bool = False
    log_y: bool = False
    low: dict[str, str] = field(default_factory=dict)
    high: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lab:
    """An experiment. Subclasses are frozen dataclasses whose fields are made with `explorer.params.param`.

    Class attributes:
        name: the command-line name, with hyphens.
        page: the slug of the page that shows it.
        title: its heading.
        question: what it answers, one sentence.
        expect: what a reader should see, and why it may differ.
        source: paper, section or document chapter.
        columns: the rows' columns, in order.
        column_titles: a short heading for each column, by column name.
        chart: how to draw the rows, or None for a table alone.
        needs_model: whether `run` asks the bench for a model.
    """

    name: ClassVar[str]
    page: ClassVar[str]
    title: ClassVar[Text]
    question: ClassVar[Text]
    expect: ClassVar[Text]
    source: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    column_titles: ClassVar[dict[str, Text]]
    chart: ClassVar[Chart | None] = None
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        params.check(self)

    def run(self, bench: "Bench") -> Iterator[Row | Progress]:
        """Do the experiment; yield a row as soon as it is known and `Progress` between repeats.

        Memory is freed on every path: a closed generator must leave nothing behind.
        """
        raise NotImplementedError

    def summarise(self, rows: list[Row]) -> dict[str, Any]:
        """The few numbers that answer `question`. Called when the run is complete."""
        raise NotImplementedError

    def answer(self, summary: dict[str, Any]) -> Text | None:
        """`summary` as one sentence that answers `question`; None shows its entries by name."""
        del summary
        return None

    def expected_seconds(self, bench_kind: str) -> float | None:
        """A rough duration at these settings ("cpu" or "cuda"), or None if unknown."""
        del bench_kind
        return None

    def parameters(self) -> dict[str, Any]:
        """All parameters with their values."""
        return asdict(self)
