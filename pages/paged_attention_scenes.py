"""Short plays that show one thing each, from an empty pool; the actions are those of `paged_attention_actions`."""

from typing import Any

from pages.paged_attention_play import SCRIPT

Scene = dict[str, Any]


def _scene(actions: list[list[Any]], start: int) -> Scene:
    return {"actions": actions, "from": start}


# `from`: how many actions have been done when the reader begins to watch.
SCENES: dict[str, Scene] = {
    # Two more requests: the second finds no piece and yet two blocks.
    "waits": _scene([*SCRIPT, ["new", 20, 64, 36], ["new", 20, 64, 36]], len(SCRIPT)),
    # B leaves a hole between A and C: the 64 slots that D wants are free, but in two holes.
    "holes": _scene([*SCRIPT, ["new", 20, 64, 36], ["finish", 1], ["new", 20, 64, 36]], len(SCRIPT)),
    # The branch C writes first and gets a copy; then A, alone with the old block, writes in place.
    "copy": _scene([*SCRIPT, ["fork", 0], ["grow", 2, 1], ["grow", 0, 1]], len(SCRIPT)),
    # Two long requests fill all blocks; the third gets in when the first has ended.
    "full": _scene([["new", 90, 96, 93], ["new", 90, 96, 96], ["new", 20, 64, 36], ["step"], ["step"], ["step"]], 0),
}
