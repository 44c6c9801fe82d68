"""The allocator in a browser: its state as the page shows it, its buttons, and what it must show after some actions."""

import json
from typing import Any

from playwright.sync_api import Page as Tab

from pages.paged_attention_actions import read_actions
from pages.paged_attention_play import BLOCK_SIZE, NUM_BLOCKS, replay

WIDGET = "#paged-attention .kv-widget"
SETTLED = f"(() => {{ const w = document.querySelector('{WIDGET}'); return w.dataset.shown === w.dataset.actions }})()"
READ = """() => {
  const w = document.querySelector('#paged-attention .kv-widget'), all = (node, css) => [...node.querySelectorAll(css)];
  const out = (name) => w.querySelector(`[data-out="${name}"]`).textContent;
  const table = (card) => all(card, '.pa-target').map((node) => Number(node.textContent.replace('→', '')));
  const kind = (strip, name) => all(strip, '.is-' + name).reduce((n, part) => n + Number(part.dataset.slots), 0);
  const slots = (strip) => ['used', 'later', 'never', 'hole', 'free'].map((name) => kind(strip, name));
  const of = (names, read) => Object.fromEntries(names.map((name) => [name, read(name)]));
  return {
    counts: of(['free', 'used', 'total', 'shared', 'unfilled'], (name) => Number(out(name))),
    tables: Object.fromEntries(all(w, '.pa-card').map((card) => [card.dataset.request, table(card)])),
    owners: all(w, '.pa-block').map((cell) => cell.dataset.owners),
    freeCells: all(w, '.pa-block.is-free').length, sharedCells: all(w, '.pa-block.is-shared').length,
    rows: of(['used', 'bound', 'hole', 'free', 'sum'], (name) => out(`reserved-${name}`)),
    pagedBound: out('paged-bound'),
    slots: all(w, '.pa-strip').map(slots),
  };
}"""


def settled(tab: Tab) -> None:
    """Wait until the last click has been answered and drawn."""
    tab.wait_for_function(SETTLED)


def press(tab: Tab, name: str) -> None:
    tab.click(f'{WIDGET} [data-press="{name}"]')
    settled(tab)


def press_card(tab: Tab, request: int, name: str) -> None:
    tab.click(f'{WIDGET} [data-request="{request}"] [data-act="{name}"]')
    settled(tab)


def said(tab: Tab) -> str:
    """What happened, in words."""
    return tab.locator(f"{WIDGET} .kv-play-text").inner_text()


def decoded(text: str) -> list[list[Any]]:
    """The actions of an address."""
    kinds, found = {"n": "new", "g": "grow", "f": "fork", "x": "finish"}, []
    for item in text.split("-"):
        if item[0] == "s":
            found += [["step"]] * int(item[1:] or 1)
        else:
            found.append([kinds[item[0]], *map(int, item[1:].split("."))])
    return found


def split_bound(state: dict[str, Any]) -> str:
    """Empty slots of used blocks, slot by slot: will a holder of the block write there before it ends?"""
    later = set()
    for request, table in state["paged"]["tables"].items():
        have, final = state["paged"]["tokens"][request], state["requests"][request][1]
        later |= {(table[j // BLOCK_SIZE], j % BLOCK_SIZE) for j in range(have, final) if j // BLOCK_SIZE < len(table)}
    empty = state["paged"]["unfilled"]
    return f"{len(later)} + {empty - len(later)} = {empty}"


def expected(actions: list[list[Any]], limit: str) -> dict[str, Any]:
    """What the page must show after these actions, by the server's own pools.

    `limit` is what the next request would reserve; one that waits already comes before it.
    """
    state = json.loads(json.dumps(replay(read_actions(actions), len(actions))[-1]))
    waiting = state["reserved"]["waiting"]
    limit = str(state["requests"][str(waiting[0][0])][0]) if waiting else limit
    paged, (used, later, never, hole, free) = state["paged"], state["reserved"]["waste"][limit]
    counts = {name: paged[name] for name in ("free", "used", "shared", "unfilled")} | {"total": NUM_BLOCKS}
    bound = later + never
    return {
        "counts": counts,
        "tables": {request: paged["tables"].get(request, []) for request in state["requests"]},
        "freeCells": paged["free"],
        "sharedCells": paged["shared"],
        "rows": {
            "used": str(used),
            "bound": f"{later} + {never} = {bound}",
            "hole": str(hole),
            "free": str(free),
            "sum": f"{used} + {bound} + {hole} + {free} = {NUM_BLOCKS * BLOCK_SIZE}",
        },
        "pagedBound": split_bound(state),
        "reserved": [used, later, never, hole, free],
        "paged": [BLOCK_SIZE * paged["used"] - paged["unfilled"], paged["unfilled"], 0, BLOCK_SIZE * paged["free"]],
    }


def check(tab: Tab, actions: list[list[Any]], limit: str = "64") -> dict[str, Any]:
    seen: dict[str, Any] = tab.evaluate(READ)
    counts = seen["counts"]
    assert counts["free"] + counts["used"] == counts["total"] == NUM_BLOCKS, counts
    (filled, later, never, *free), seen["reserved"] = seen["slots"]
    seen["paged"] = [filled, later + never, *free]
    wanted = expected(actions, limit)
    assert {name: seen[name] for name in wanted} == wanted, actions
    return seen
