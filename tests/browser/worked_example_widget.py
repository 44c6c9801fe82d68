"""The page "Worked example" as its tests handle it: settings put into its controls, and what it must then show."""

import random
from typing import Any

from explorer.estimators.capacity import rank_use
from explorer.estimators.memory import cache_bytes
from explorer.estimators.ranks import Ranks
from explorer.estimators.sharing import Sharing, share_prefix
from explorer.estimators.transfer import decode_step, divided, duration, move, transfer_ns
from explorer.specs import units
from explorer.specs.catalog import device_named, devices, model_named
from explorer.specs.dtypes import DTYPES
from pages.worked_example import BITS, LIMITS, MODEL, MOVERS, START, TP

QWEN = model_named(MODEL)
GIB, GB = 2**30, 10**9

# Puts each setting into the controls of one section (its twins must follow), waits for the drawing, reads every number.
APPLY = """async ([cases, sections]) => {
  const root = (section) => document.querySelector(`#worked-${section} .kv-widget`);
  const put = (section, name, value) => {
    const input = root(section)?.querySelector(`[data-control="${name}"]`);
    if (!input) return false;
    const target = input.type === 'range' ? document.getElementById(`${input.id}-exact`) : input;
    target.value = String(value);
    target.dispatchEvent(new Event(target.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }));
    return true;
  };
  const frame = () => new Promise(requestAnimationFrame);
  const seen = [];
  for (const [i, values] of cases.entries()) {
    for (const [name, value] of Object.entries(values)) {
      // Another section each time, so that every control of the page is used.
      if (![...sections.slice(i % 4), ...sections].some((section) => put(section, name, value))) throw new Error(name);
    }
    await frame(); await frame();
    const cells = [...document.querySelectorAll('[data-out]')];
    seen.push(Object.fromEntries(cells.map((cell) => [cell.dataset.out, cell.textContent])));
  }
  return seen;
}"""


def some_settings(draw: random.Random) -> dict[str, Any]:
    """Settings that the page's controls take, anywhere in their ranges."""

    def near(name: str) -> int:
        low, high = LIMITS[name]
        return min(high, max(low, round(2 ** draw.uniform((low or 1).bit_length() - 1, high.bit_length()))))

    tokens = near("tokens")
    return {
        "requests": draw.randint(*LIMITS["requests"]),
        "tokens": tokens,
        "cache": draw.choice(list(DTYPES)),
        "weights": str(draw.choice(BITS)),
        "gpu": draw.choice(list(devices())),
        "tp": str(draw.choice(TP)),
        "reserve": draw.randint(0, 64) / 2,
        "bandwidth": near("bandwidth"),
        "prefix": draw.choice([near("prefix"), max(16, tokens - 1), max(16, tokens)]),
        "block": near("block"),
        "mover": draw.choice(MOVERS),
        "moved": near("moved"),
        "link": draw.randint(10, 10_000) / 10,
        "prefill": near("prefill"),
    }


def wanted(settings: dict[str, Any]) -> dict[str, str]:
    """What the page must show in English, from the estimators."""
    s = START | settings
    return _capacity(s) | _bandwidth(s) | _prefix(s) | _move(s)


def both(num_bytes: int) -> str:
    """A size in both units, as the page writes it."""
    return units.binary(num_bytes) if num_bytes < 1_000 else f"{units.binary(num_bytes)} = {units.decimal(num_bytes)}"


def tokens_text(tokens: int) -> str:
    """A number of tokens in words."""
    return "1 token" if tokens == 1 else f"{units.count(tokens)} tokens"


def percent(part: int, whole: int) -> str:
    """With one decimal, rounded half up."""
    tenths = divided(1_000 * part, whole)
    return f"{tenths // 10:,}.{tenths % 10}%"


def _capacity(s: dict[str, Any]) -> dict[str, str]:
    use = rank_use(
        QWEN,
        s["tokens"],
        s["requests"],
        device_named(s["gpu"]).memory_bytes,
        dtype=s["cache"],
        bits_per_weight=int(s["weights"]),
        tp=int(s["tp"]),
        reserve_bytes=int(s["reserve"] * GIB),
    )
    free = use.free_bytes
    return {
        "memory": both(use.memory_bytes),
        "rank-weights": both(use.weight_bytes),
        "rank-each": both(use.kv_bytes_each),
        "rank-kv": both(use.kv_bytes),
        "left": f"{units.binary(abs(free))} {'short' if free < 0 else 'free'}",
        "fit": units.count(use.requests_that_fit) if use.room_bytes > 0 else "none",
    }


def _bandwidth(s: dict[str, Any]) -> dict[str, str]:
    speed = int(s["bandwidth"]) * GB
    step = decode_step(
        QWEN,
        s["tokens"],
        s["requests"],
        speed,
        dtype=s["cache"],
        bits_per_weight=int(s["weights"]),
        ranks=Ranks(tp=int(s["tp"])),
    )
    sizes = [units.decimal(size) for size in (step.weight_bytes, step.kv_bytes, step.total_bytes)]
    return {
        "each-time": duration(transfer_ns(step.kv_bytes // s["requests"], speed)),
        "weights-time": duration(transfer_ns(step.weight_bytes, speed)),
        "kv-time": duration(step.kv_ns),
        "step-time": duration(step.ns),
        "step-read": f"{sizes[0]} + {sizes[1]} = {sizes[2]}",
        "per-token": units.decimal(step.bytes_per_token),
        "kv-share": percent(step.kv_bytes, step.total_bytes),
        "bound": f"{units.count(divided(s['requests'] * speed, step.total_bytes))} tokens/s",
        "even": f"{units.count(step.even_batch)} requests" if step.even_batch > 1 else "1 request",
    }


def sharing_of(s: dict[str, Any]) -> Sharing:
    """Section C's case."""
    each = cache_bytes(QWEN, 1, 1, s["cache"]).total_bytes
    return share_prefix(each, s["requests"], s["tokens"], min(s["prefix"], s["tokens"]), s["block"])


def _prefix(s: dict[str, Any]) -> dict[str, str]:
    case = sharing_of(s)

    def prefill(tokens: int) -> str:
        return f"{tokens_text(tokens)}, {duration(divided(tokens * GB, s['prefill']))}"

    blocks = f"{units.count(case.shared_tokens // s['block'])} × {units.count(s['block'])}"
    return {
        "shared-tokens": f"{tokens_text(case.shared_tokens)} = {blocks}",
        "lost-tokens": tokens_text(case.unshared_prefix_tokens),
        "apart": both(case.apart_bytes),
        "once": both(case.shared_bytes),
        "saved": both(case.saved_bytes),
        "tail": both(case.tail_bytes),
        "prefill-apart": prefill(s["requests"] * s["tokens"]),
        "prefill-once": prefill(case.prefill_tokens),
        "prefill-saved": prefill(case.saved_prefill_tokens),
        "still-read": both(case.apart_bytes),
    }


def _move(s: dict[str, Any]) -> dict[str, str]:
    each, link = cache_bytes(model_named(s["mover"]), 1, 1, s["cache"]).total_bytes, round(s["link"] * 10) * GB // 10
    moved = move(s["moved"], each, link, s["prefill"])
    return {
        "one-gb": duration(transfer_ns(GB, link)),
        "move-bytes": f"{units.count(s['moved'])} × {units.binary(each)} = {both(moved.num_bytes)}",
        "load-time": duration(moved.load_ns),
        "load-rate": f"{units.count(moved.load_tokens_per_s)} tokens/s",
        "recompute-time": duration(moved.recompute_ns),
        "even-link": f"{units.decimal(moved.break_even_bytes_per_s)}/s",
        "each-token": duration(moved.load_ns),
    }
