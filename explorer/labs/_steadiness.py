"""How steady a run's times were, and the sentence that says so when they were not."""

from explorer.measuring.record import Row
from explorer.text import Text

UNSTEADY = 2.0


def spread(rows: list[Row], *names: str) -> float:
    """The largest 80th over 20th percentile among the times `name_ms` of all rows."""
    return max(row[f"{name}_p80_ms"] / row[f"{name}_p20_ms"] for row in rows for name in names)


def remark(found: float) -> Text:
    """What follows an answer whose times vary: nothing, or that they should be taken again.

    With a core busy elsewhere, a product over all cores waits for the slowest of them; small products suffer most, so
    such ratios say more about the other programs than about the ways that are compared.
    """
    if found < UNSTEADY:
        return Text("", "")
    return Text(
        f" These times are unsteady: in one row the 80th percentile is {found:.1f} times the 20th. Other programs may "
        "be using this machine; measure again when it is idle.",
        f"这次的用时不稳定：有一行的第 80 百分位是第 20 百分位的 {found:.1f} 倍。可能有别的程序在用这台机器，"
        "请等空闲时再测。",
    )


def between(low: float, high: float) -> Text:
    """The 20th to the 80th percentile of a ratio, in brackets."""
    return Text(f"({low:.1f} to {high:.1f})", f"（{low:.1f} 到 {high:.1f}）")
