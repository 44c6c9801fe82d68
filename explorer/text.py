"""A line of text in both of the explorer's languages, kept together so that neither is forgotten."""

from dataclasses import dataclass
from typing import Literal

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = ("en", "zh")


@dataclass(frozen=True)
class Text:
    """The same line in English and in Chinese.

    Attributes:
        en: English.
        zh: Chinese (simplified).
    """

    en: str
    zh: str

    def get(self, lang: Lang) -> str:
        """The line in `lang`."""
        return self.zh if lang == "zh" else self.en

    def format(self, **values: object) -> "Text":
        """Both lines with their `{names}` filled in."""
        return Text(self.en.format(**values), self.zh.format(**values))

    def __str__(self) -> str:
        return self.en
