"""Errors that a reader sees: one line each, in the reader's language, saying what would be right."""

from explorer.text import Text


class ExplorerError(Exception):
    """Something the reader can act on. `str()` gives the English line; pages take `text.get(lang)`."""

    def __init__(self, text: Text | str, zh: str | None = None):
        self.text = text if isinstance(text, Text) else Text(text, zh if zh is not None else text)
        super().__init__(self.text.en)


class InputError(ExplorerError, ValueError):
    """A value that the caller gave cannot be used (the command line exits with 2)."""


class Stopped(ExplorerError):
    """The run was stopped, or its visitor left."""


class DeadlineExceeded(ExplorerError):
    """The run took longer than it may."""


class ResourceError(ExplorerError):
    """This machine cannot do it: not enough memory, no such device, no weights."""
