"""How far a run's times can be trusted, and the sentence that says so when they cannot.

What else ran on the machine is in the provenance, and the page says it for every lab. Here is what the repeats tell.
"""

from typing import Any

from explorer.measuring.record import Row
from explorer.text import Text

UNSTEADY = 2.0


def steadiness(rows: list[Row], *names: str) -> dict[str, Any]:
    """What a summary keeps for `remark`.

    Returns:
        spread: the largest 80th over 20th percentile among the times `name_ms` of all rows.
    """
    return {"spread": max(row[f"{name}_p80_ms"] / row[f"{name}_p20_ms"] for row in rows for name in names)}


def remark(summary: dict[str, Any]) -> Text:
    """What follows an answer: nothing, or why its times should be taken again."""
    spread = summary["spread"]
    if spread >= UNSTEADY:
        return Text(
            f" These times are unsteady: in one row the 80th percentile is {spread:.1f} times the 20th. Other programs "
            "may be using this machine; measure again later.",
            f"这次的用时不稳定：有一行的第 80 百分位是第 20 百分位的 {spread:.1f} 倍。可能有别的程序在用这台机器，"
            "请稍后再测。",
        )
    return Text("", "")


def between(low: float, high: float) -> Text:
    """The 20th to the 80th percentile of a ratio, in brackets."""
    return Text(f"({low:.1f} to {high:.1f})", f"（{low:.1f} 到 {high:.1f}）")
