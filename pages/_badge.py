"""The five origins of a number: one mark, one colour, one word, the same on every page."""

from html import escape

from explorer.measuring.record import Origin
from explorer.text import Lang, Text

MARKS: dict[Origin, str] = {
    Origin.COMPUTED: "f",
    Origin.MEASURED: "●",
    Origin.RECORDED: "◷",
    Origin.QUOTED: "“",
    Origin.TOY: "△",
}

WORDS: dict[Origin, Text] = {
    Origin.COMPUTED: Text("computed", "计算"),
    Origin.MEASURED: Text("measured", "实测"),
    Origin.RECORDED: Text("recorded", "记录"),
    Origin.QUOTED: Text("quoted", "引用"),
    Origin.TOY: Text("toy", "示意"),
}

MEANINGS: dict[Origin, Text] = {
    Origin.COMPUTED: Text("A formula gives it, from a named configuration.", "由公式得出，配置写明。"),
    Origin.MEASURED: Text(
        "Measured here and now; device, implementation, dtype, repeats and spread are named.",
        "此时在这台机器上测得；设备、实现、dtype、重复次数和离散程度都会写明。",
    ),
    Origin.RECORDED: Text(
        "Measured earlier on a named device; date, versions and commit are given.",
        "早先在写明的设备上测得；附日期、版本和 commit。",
    ),
    Origin.QUOTED: Text(
        "A paper or a vendor says so; the conditions are given.", "论文或厂商给出的数字；附其成立条件。"
    ),
    Origin.TOY: Text("An illustration: made up to show how something works.", "示意用的数字，只为说明原理。"),
}


def badge(origin: Origin, lang: Lang) -> str:
    """The badge of `origin` as an HTML string: mark and word; the tooltip says what it means."""
    word, meaning = WORDS[origin].get(lang), MEANINGS[origin].get(lang)
    return (
        f'<span class="kv-badge kv-{origin.value}" title="{escape(meaning, quote=True)}">'
        f'<span class="kv-badge-mark" aria-hidden="true">{MARKS[origin]}</span>{escape(word)}</span>'
    )
