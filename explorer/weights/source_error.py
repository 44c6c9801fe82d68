"""A source that cannot give the weights now, so that the next one is tried."""

from explorer.text import Text


class SourceError(Exception):
    """Why a source gave nothing: a few words that fit into brackets within a longer line."""

    def __init__(self, reason: Text):
        self.reason = reason
        super().__init__(reason.en)
