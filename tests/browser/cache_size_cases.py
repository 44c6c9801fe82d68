"""What the widget of the page "Cache size" computes for a setting, and what the estimators say to the same."""

import math
from fractions import Fraction
from typing import Any

from explorer.errors import InputError
from explorer.estimators import sums
from explorer.estimators.memory import MAX_TOKENS, cache_bytes
from explorer.estimators.ranks import Ranks
from explorer.specs import pieces, units
from explorer.specs.formats import cache_format
from explorer.specs.model import ModelSpec

# The widget's own arithmetic, fed with an entry as the page gets it; a setting that it would take back gives "refused".
JS = """(cases) => {
  const props = window.gradio_config.components.find((c) => c.props.elem_id === 'cache-size').props.value;
  const text = (n) => (n === null ? null : String(n)), ratio = ({ n, d }) => [String(n), String(d)];
  const plain = (form) => form.packing[1] === null && !Object.keys(form.own).length && !form.residual_length;
  const formats = props.formats.map((form) => ({ ...form, plain: plain(form) }));
  return cases.map(({ entry, mode, choice, mtp, values, memory }) => {
    const device = { name: 'x', title: 'x', memory_bytes: memory };
    const source = { mode: () => mode, entry: () => entry, base: () => entry, choice: () => choice, mtp: () => mtp,
      params: () => entry.weight_params, stamp: () => 0 };
    const controls = { values: { ...values, gpu: 'x' } };
    const state = KV.cacheSizeState({ ...props, formats, devices: [device] }, source, controls);
    const form = formats.find((item) => item.name === values.dtype);
    if (!state.suited(form) || state.uneven()) return 'refused';
    const m = KV.cacheSize, now = state.now();
    return {
      total: text(now.total), one: text(now.onOne), all: text(now.onAll), read: text(now.read), slope: ratio(now.slope),
      constant: ratio(now.constant), settled: now.settled, crossing: text(now.crossing),
      fits: now.room < 0n ? null : text(now.fits),
      weights: text(now.weights), words: [m.binary(now.total), m.decimal(now.total), m.tokens(values.tokens)],
      rows: now.rows.map((row) => [row.kind, row.layers.length, row.owner ?? null, Boolean(row.draft),
        text(now.here(row.kept)), text(now.here(row.read)), ratio(m.slope(row.kept)), ratio(m.constant(row.kept))]),
      slope_now: ratio(now.slopeNow),
    };
  });
}"""


def python(spec: ModelSpec, case: dict[str, Any], bits: int) -> Any:
    """What `JS` gives, by the estimators."""
    values, mtp = case["values"], case["mtp"]
    tokens, batch, ranks = values["tokens"], values["batch"], int(values["tp"])
    form = cache_format(values["dtype"])
    try:
        found = cache_bytes(
            spec,
            tokens,
            batch,
            kv_format=form if form.packing.bits < 16 else None,
            dtype="bf16" if form.packing.bits < 16 else form.name,
            ranks=Ranks(tp=ranks),
            include_mtp=mtp,
        )
    except InputError:
        return "refused"
    part = sums.kept(sums.groups(spec, mtp), form, ranks)
    weights = spec.weight_bytes(bits)
    assert weights is not None
    share = -(-weights // ranks)
    room = case["memory"] - share
    below = sums.longest(part, lambda size: batch * size <= share, MAX_TOKENS)
    return {
        "total": str(found.total_bytes),
        "one": str(found.per_rank.total_bytes),
        "all": str(found.per_rank.all_ranks_bytes),
        "read": str(found.read_bytes),
        "slope": _ratio(found.bytes_per_token_growing),
        "constant": _ratio(found.constant_bytes),
        "settled": found.settled_at,
        "crossing": None if below == MAX_TOKENS else str(below + 1),
        "fits": None if room < 0 else str(sums.longest(part, lambda size: batch * size <= room, MAX_TOKENS)),
        "weights": str(weights),
        "words": [units.binary(found.total_bytes), units.decimal(found.total_bytes), units.tokens(tokens)],
        "rows": [
            [
                row.kind,
                row.num_layers,
                row.owner,
                row.mtp,
                str(row.total_bytes),
                str(row.read_bytes),
                _ratio(row.bytes_per_token_growing),
                _ratio(row.constant_bytes),
            ]
            for row in found.ledger
        ],
    }


def slope_seen(spec: ModelSpec, case: dict[str, Any]) -> list[str] | None:
    """The slope at a length by taking sizes apart: over one whole period, if nothing fills up or begins within it."""
    tokens = case["values"]["tokens"]
    keep = sums.kept(sums.groups(spec, case["mtp"]), cache_format(case["values"]["dtype"]))
    period = math.lcm(*(piece.rows.every or 1 for piece in keep))
    for piece in keep:
        rows = piece.rows
        events = [rows.skip] + ([rows.skip + rows.every * rows.cap] if rows.every and rows.cap is not None else [])
        if rows.every and any(tokens < event < tokens + period for event in events):
            return None
    grown = pieces.total(keep, tokens + period) - pieces.total(keep, tokens)
    return _ratio(Fraction(grown, period))


def _ratio(value: int | Fraction) -> list[str]:
    return [str(Fraction(value).numerator), str(Fraction(value).denominator)]
