"""How much work one program of `paged_attention` gets: tile sizes, warps, and into how many splits a context is cut."""

from typing import Any

from kernels._triton import next_power_of_2, padded

MAX_SPLITS = 64
MIN_SPLIT_LEN = 256  # Keys; less reading than this does not pay for a merge
DECODE_ROWS = 16  # the tensor cores multiply at least so many rows
# Programs of the decode tile that fit beside each other on one multiprocessor, by the ahead-of-time report (heads of
# 128): 38 KiB of shared memory and 90 to 107 registers in each of 128 threads. Not yet timed on a GPU.
PROGRAMS_PER_SM = 4


def splits_for(programs: int, kv_len: int, num_sms: int) -> int:
    """How many splits of the context let a decode step fill the GPU.

    Args:
        programs: sequences times KV heads.
        kv_len: Keys that the longest sequence reads.
        num_sms: the GPU's multiprocessors.
    """
    wanted = -(-PROGRAMS_PER_SM * num_sms // programs)
    return max(1, min(wanted, -(-kv_len // MIN_SPLIT_LEN), MAX_SPLITS))


def constants_for(group: int, head_dim: int, element_bytes: int, is_decode: bool) -> dict[str, Any]:
    """The kernel's constants that follow from the heads.

    Args:
        group: Query heads that share a KV head; any number, the tile's spare rows idle.
        head_dim: any number, padded to a power of two.
        element_bytes: of Queries, Keys and Values.
        is_decode: one Query for each sequence, or so few that they fit into its tile.
    """
    dim_pad = padded(head_dim)
    return {
        "GROUP": group,
        "HEAD_DIM": head_dim,
        "DIM_PAD": dim_pad,
        # float32 runs without tensor cores and needs registers instead.
        "ROWS": max(DECODE_ROWS if is_decode or element_bytes == 4 else 64, next_power_of_2(group)),
        # 16 KiB each of Keys and Values in one stage, so that three stages fit into sm_120's 99 KiB. Prefill with
        # wide heads takes half of it: with 64 Keys the tile spills registers on sm_80 (ahead-of-time report).
        "TILE_K": max(16, min(32 if dim_pad > 64 and not is_decode else 64, 16384 // (dim_pad * element_bytes))),
    }


def launch_options(head_dim: int, rows: int, is_decode: bool) -> dict[str, int]:
    """Warps of one program and depth of its software pipeline: what the ahead-of-time report shows without spills."""
    wide_prefill = head_dim > 128 and not is_decode
    return {"num_warps": 8 if wide_prefill or rows > 64 else 4, "num_stages": 2 if wide_prefill else 3}
