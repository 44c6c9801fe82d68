"""Bytes and tokens as text. GiB is 2**30 bytes, GB is 10**9; a number never appears without saying which.

Whole-number arithmetic throughout, so that what is printed is the value rounded half up and never a float's guess.
The browser's copy of these rules is in `assets/js/cache-size-math.js`; a test holds the two equal.
"""

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

BINARY = ((1, "B"), (KIB, "KiB"), (MIB, "MiB"), (GIB, "GiB"), (TIB, "TiB"), (2**50, "PiB"))
DECIMAL = ((1, "B"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"), (10**15, "PB"))


def binary(num_bytes: int) -> str:
    """`num_bytes` in the largest fitting power of 1,024: "512 B", "128.00 KiB", "16.00 GiB"."""
    return _scaled(num_bytes, BINARY)


def decimal(num_bytes: int) -> str:
    """`num_bytes` in the largest fitting power of 1,000: "512 B", "131.07 kB", "17.18 GB"."""
    return _scaled(num_bytes, DECIMAL)


def in_unit(num_bytes: int, unit_bytes: int) -> str:
    """`num_bytes` counted in units of `unit_bytes`, two decimals, rounded half up."""
    hundredths = (200 * num_bytes + unit_bytes) // (2 * unit_bytes)
    return f"{hundredths // 100:,}.{hundredths % 100:02d}"


def count(number: int) -> str:
    """A whole number with its thousands separated: "131,072"."""
    return f"{number:,}"


def tokens(number: int) -> str:
    """A token count, in Ki (1,024) or Mi (1,048,576) as well where that is a whole number: "131,072 (128 Ki)"."""
    for size, name in ((2**20, "Mi"), (2**10, "Ki")):
        if number >= size and number % size == 0:
            return f"{number:,} ({number // size:,} {name})"
    return f"{number:,}"


def _scaled(num_bytes: int, units: tuple[tuple[int, str], ...]) -> str:
    for (size, name), (following, _) in zip(units, (*units[1:], (0, "")), strict=True):
        # 1,023.996 KiB would round to "1,024.00 KiB": then the next unit says it better.
        if not following or (200 * num_bytes + size) // (2 * size) < 100 * (following // size):
            return f"{num_bytes:,} B" if size == 1 else f"{in_unit(num_bytes, size)} {name}"
    raise AssertionError("the last unit always fits")
