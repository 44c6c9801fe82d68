"""A reader's own `config.json`, pasted as text: read on the server with all checks, never fetched, never kept."""

from typing import Any

from explorer.errors import InputError
from explorer.specs.from_config import from_config
from explorer.specs.read_config import parse_config
from explorer.text import Lang
from pages.cache_size_entries import entry_of

# Published files are a few KB; those that list every quantised module reach some hundred.
MAX_TEXT = 200_000
NAME = "config.json"


def parse_text(text: object) -> Any:
    """The parsed content of a config given as text.

    Raises:
        InputError: it is no text, empty, too long, or not JSON.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "config is empty: expected the text of a config.json, beginning with {",
            "config 为空：应为 config.json 的文本，以 { 开头",
        )
    if len(text) > MAX_TEXT:
        raise InputError(
            f"config has {len(text):,} characters: expected a model's config.json, at most {MAX_TEXT:,}",
            f"config 有 {len(text):,} 个字符：应为模型的 config.json，至多 {MAX_TEXT:,} 个字符",
        )
    return parse_config(text)


def read_pasted(text: object, lang: Lang) -> dict[str, Any]:
    """What the widget gets for a pasted text: the model as in the catalogue, or one line that says what is wrong."""
    try:
        parsed = parse_text(text)
        return {"status": "read", "entry": entry_of(lambda switches: from_config(parsed, NAME, switches), lang)}
    except InputError as error:
        return {"status": "refused", "message": error.text.get(lang)}
