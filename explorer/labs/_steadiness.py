"""How far a run's times can be trusted, and the sentence that says so when they cannot.

With a core busy elsewhere, a step over all cores waits for the slowest of them at each of its small parts, every time:
the repeats may agree and still be many times too long. So both are looked at, the spread and what else runs.
"""

import os
from typing import Any

from explorer.measuring.provenance import BUSY
from explorer.measuring.record import Row
from explorer.text import Text

UNSTEADY = 2.0


def steadiness(rows: list[Row], *names: str) -> dict[str, Any]:
    """What a summary keeps for `remark`.

    Returns:
        spread: the largest 80th over 20th percentile among the times `name_ms` of all rows.
        load_average: of the last minute, None where the system does not tell.
        cpu_count: cores of the machine.
    """
    ratios = (row[f"{name}_p80_ms"] / row[f"{name}_p20_ms"] for row in rows for name in names)
    try:
        load = round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        load = None
    return {"spread": max(ratios), "load_average": load, "cpu_count": os.cpu_count() or 1}


def remark(summary: dict[str, Any]) -> Text:
    """What follows an answer: nothing, or why its times should be taken again."""
    load, cores, spread = summary["load_average"], summary["cpu_count"], summary["spread"]
    if load is not None and load > BUSY * cores:
        return Text(
            f" Other programs were using this machine (load average {load:g}, {cores} cores). That lengthens ways with "
            "many small steps most, so these ratios are not those of an idle machine: measure again later.",
            f"测量时有别的程序在用这台机器（系统负载 {load:g}，{cores} 核）。小步骤多的方式被拖慢得最厉害，"
            "所以这些倍数不是空闲机器上的倍数，请稍后再测。",
        )
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
