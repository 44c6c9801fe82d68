"""The two questions that the page's widget asks the server. Anyone can send them, so everything is checked here."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from explorer.errors import ExplorerError, InputError
from explorer.text import Lang, Text
from pages import attention_payload as payload
from pages.attention_desk import Desk, Waiting

BROKEN = Text("This sentence could not be read; the log says why.", "无法读取这个句子；原因见日志。")
_log = logging.getLogger(__name__)
Answer = dict[str, Any]


@cache
def desk() -> Desk:
    """The desk that all visitors share."""
    return Desk()


def answers(lang: Lang) -> list[Callable[..., Any]]:
    """`read_sentence` and `read_head`, with their lines in `lang`."""

    def read_sentence(question: Any) -> Answer:
        return sentence(question, lang)

    def read_head(question: Any) -> Answer:
        return head(question, lang)

    return [read_sentence, read_head]


def sentence(question: Any, lang: Lang) -> Answer:
    """Answer `{"text": str, "again": bool}` with `payload.sentence`, a line to wait by, or an error's line."""

    def work() -> Answer:
        fields = _fields(question)
        found = desk().ask(fields.get("text"), again=fields.get("again") is True)
        return _waiting(found, lang) if isinstance(found, Waiting) else payload.sentence(found)

    return _safely(work, lang)


def head(question: Any, lang: Lang) -> Answer:
    """Answer `{"text": str, "layer": int, "head": int}` with `payload.head`, a line to wait by, or an error's line."""

    def work() -> Answer:
        fields = _fields(question)
        found = desk().ask(fields.get("text"))
        if isinstance(found, Waiting):
            return _waiting(found, lang)
        return payload.head(found, fields.get("layer"), fields.get("head"))

    return _safely(work, lang)


def _fields(question: Any) -> dict[str, Any]:
    if not isinstance(question, dict):
        raise InputError("expected an object with a text", "应为包含 text 的对象")
    return question


def _waiting(found: Waiting, lang: Lang) -> Answer:
    return {"status": "waiting", "message": found.text.get(lang)}


def _safely(work: Callable[[], Answer], lang: Lang) -> Answer:
    try:
        return work()
    except ExplorerError as error:
        return {"status": "error", "message": error.text.get(lang)}
    except Exception:
        _log.exception("a sentence could not be read")
        return {"status": "error", "message": BROKEN.get(lang)}
