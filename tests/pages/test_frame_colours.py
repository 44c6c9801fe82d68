"""The palette's contrast, computed from the style sheet by WCAG's formula."""

import re

import pytest

from pages import _content

TEXT = 4.5
GRAPHIC = 3.0
GROUNDS = ("paper", "card", "soft")
INKS = (
    *("ink", "muted", "accent", "bad", "computed", "measured", "recorded", "quoted", "toy"),
    *("q-ink", "k-ink", "v-ink", "c-ink", "s-ink"),
)


def palette(theme: str) -> dict[str, str]:
    text = (_content.ASSETS / "css" / "kv-1-tokens.css").read_text()
    light, dark = (re.search(rf"{re.escape(head)} \{{(.*?)\}}", text, re.DOTALL) for head in (":root", ":root.dark"))
    assert light and dark
    blocks = [light[1]] if theme == "light" else [light[1], dark[1]]
    return {k: v for block in blocks for k, v in re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", block)}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(theme: str) -> None:
    colours = palette(theme)
    pairs = [(ink, ground, TEXT) for ink in INKS for ground in GROUNDS]
    pairs += [(f"on-{tensor}", tensor, TEXT) for tensor in "qkvcs"]
    pairs += [("on-block", state, TEXT) for state in ("used", "shared")]
    pairs += [("ink", state, TEXT) for state in ("free", "idle")] + [("muted", "evicted", TEXT)]
    pairs += [("paper", "accent", TEXT), ("paper", "accent-strong", TEXT)]
    pairs += [(f"series-{i}", ground, GRAPHIC) for i in range(1, 7) for ground in ("paper", "card")]
    pairs += [("edge", ground, GRAPHIC) for ground in GROUNDS] + [("block-edge", "paper", GRAPHIC)]
    found = {f"{one} on {other}": (contrast(colours[one], colours[other]), limit) for one, other, limit in pairs}
    assert not {name: value for name, value in found.items() if value[0] < value[1]}


def test_the_formula() -> None:
    assert contrast("#fff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
