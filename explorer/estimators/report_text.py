"""`report`'s result as a few lines for a terminal. Bytes come in binary (GiB) and in decimal (GB) units."""

from typing import Any

from explorer.specs import units


def text(result: dict[str, Any]) -> str:
    """The lines."""
    lines = [
        f"{result['model']}, {units.tokens(result['tokens'])} tokens, batch {result['batch']:,}, {result['kv_format']}",
        f"  cache      {_both(result['total_bytes'])}",
        f"  per token  {_slope(result['bytes_per_token_growing'])} of one sequence",
    ]
    if result["constant_bytes"]:
        constant = result["constant_bytes"]
        lines.append(f"  constant   {_both(round(constant))} of one sequence, from {result['settled_at']:,} tokens on")
    lines.append(f"  read       {_both(result['read_bytes_per_step'])} to decode one token of every sequence")
    if result["weight_bytes_16bit"] is not None:
        crossing = result["crossing_tokens"]
        where = (
            f"outgrown by the cache from {crossing:,} tokens" if crossing else "not outgrown at any length counted here"
        )
        lines.append(f"  weights    {_both(result['weight_bytes_16bit'])} at 16 bits, {where}")
    lines += _rank_lines(result["per_rank"])
    lines += [_layer_line(row) for row in result["ledger"]]
    lines += [f"  assumed    {line}" for line in result["assumptions"]]
    lines += [f"  switch     --assume {s['name']}: {s['on']['en']}" for s in result["switches"] if not s["chosen"]]
    lines.append(f"  source     {result['source']}" + (f" ({result['source_date']})" if result["source_date"] else ""))
    return "\n".join(lines)


def _layer_line(row: dict[str, Any]) -> str:
    draft = ", draft" if row["mtp"] else ""
    shape = f" ({row['shape']}{draft})" if row["shape"] else ""
    return f"  layers     {row['num_layers']:,} x {row['kind']}{shape}: {units.binary(row['total_bytes'])}"


def _rank_lines(rank: dict[str, Any]) -> list[str]:
    if rank["tp"] == rank["pp"] == rank["dp"] == 1:
        return []
    spread = f"tp {rank['tp']}, pp {rank['pp']}, dp {rank['dp']}"
    return [
        f"  one device {_both(rank['total_bytes'])} on the fullest ({spread})",
        f"  all        {_both(rank['all_ranks_bytes'])} on all devices, copies included",
    ]


def _slope(per_token: float) -> str:
    if isinstance(per_token, int):
        return f"{units.binary(per_token)} ({per_token:,} B)"
    return f"{per_token:,.2f} B on average"


def _both(num_bytes: int) -> str:
    return f"{units.binary(num_bytes)} = {units.decimal(num_bytes)} = {num_bytes:,} B"
