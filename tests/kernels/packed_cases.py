"""Ragged packed sequences for the tests of `flash_attention` and `attention_sums`."""

import torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

# (Queries, Keys) of each sequence, num_heads, num_kv_heads, head_dim, sliding_window
SHAPES = {
    "lengths 1 and odd, 9/3 heads": (((1, 1), (37, 37), (5, 5)), 9, 3, 64, None),
    "fewer queries than keys": (((1, 41), (9, 20), (6, 6)), 6, 2, 80, None),
    "an empty sequence between": (((3, 3), (0, 0), (0, 4), (2, 2)), 4, 4, 96, None),
    "window inside a tile": (((50, 70),), 3, 1, 64, 7),
    "window over several tiles": (((70, 150),), 2, 1, 64, 100),
    "window of one, groups of five": (((33, 33), (2, 3)), 5, 1, 128, 1),
    "wide heads": (((35, 40),), 2, 1, 256, None),
}


def packed(name, dtype, seed=0):
    """Queries, Keys, Values and where each sequence begins; all rounded to `dtype`.

    Keys and Values are cut out of a wider tensor, and NaN surrounds the tokens.
    """
    lens, num_heads, num_kv_heads, head_dim, sliding_window = SHAPES[name]
    torch.manual_seed(seed)
    cu, cu_k = (torch.tensor([0, *each]).cumsum(0).int() for each in zip(*lens, strict=True))
    q = torch.randn(int(cu[-1]), num_heads, head_dim).to(dtype)
    wide = torch.full((int(cu_k[-1]) + 64, 2 * num_kv_heads + 1, head_dim), float("nan"), dtype=dtype)
    inner = wide[32 : 32 + int(cu_k[-1]), : 2 * num_kv_heads]
    inner.copy_(torch.randn(inner.shape))
    k, v = inner.split(num_kv_heads, 1)
    return q, k, v, cu, cu_k, sliding_window
