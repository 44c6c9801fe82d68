"""Words that go with a number."""


def counted(number: int, noun: str) -> str:
    """The number with its English noun: "1 token", "2,048 tokens"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
