// All numbers of the page "Cache size" for what the controls say. KV.cacheSizeState(props, source, controls) -> { now(), uneven(), suited(form) }.
// What depends on the model, the format and the ranks alone is kept until one of them changes.
KV.cacheSizeState = (props, source, controls) => {
  "use strict";
  const size = KV.cacheSize, { pieces, uneven, unsuited, formatNames } = KV.cacheSizeTensors(props.packed_roles, props.formats);
  const named = (list, name) => list.find((item) => item.name === name);

  const ownGroups = ({ layers, kv_heads, head_dim }) => [{
    kind: "full_attention", title: props.own.title, shape: "", layers: Array.from({ length: layers }, (_, i) => i),
    tensors: ["key", "value"].map((role) => ({ role, heads: kv_heads, dim: head_dim })),
  }];
  const variant = () => (source.mode() === "own"
    ? { groups: ownGroups(controls.values), mtp: [], assumed: props.own.assumed } : source.entry().variants[source.choice()]);
  const groups = () => {
    const { groups: found, mtp } = variant();
    return source.mtp() ? [...found, ...mtp.map((item) => ({ ...item, draft: true }))] : found;
  };
  const summed = (rows, key) => size.merged(rows.flatMap((row) => row[key]).map((piece) => [piece, 1]));

  const build = (form, ranks) => {
    const rows = groups().map((group) => {
      const times = (found) => found.map((piece) => ({ ...piece, bytes: piece.bytes * BigInt(group.layers.length) }));
      return {
        kind: group.kind, title: group.title, shape: group.shape, layers: group.layers, owner: group.owner, draft: group.draft, formats: formatNames(group, form),
        kept: times(pieces(group, form, 1)), read: times(pieces(group, form, 1, true)), one: times(pieces(group, form, ranks)),
      };
    });
    const kinds = new Map();
    for (const row of rows.filter((item) => item.one.length)) {
      const found = kinds.get(row.kind) || { kind: row.kind, title: row.title, rows: [] };
      found.rows.push(row);
      kinds.set(row.kind, found);
    }
    const whole = summed(rows, "kept"), part = summed(rows, "one");
    return {
      rows, whole, part, reading: summed(rows, "read"),
      kinds: [...kinds.values()].map((kind) => ({ ...kind, part: summed(kind.rows, "one") })),
      slope: size.slope(whole), constant: size.constant(whole), settled: size.settledAt(whole), bends: size.bends(part),
      assumed: variant().assumed.map((line) => (typeof line === "number" ? props.lines[line] : line)),
    };
  };

  let built = null, key = "";
  const ready = (form, ranks) => {
    const { layers, kv_heads, head_dim } = controls.values;
    const wanted = [source.mode(), source.mode() === "own" ? [layers, kv_heads, head_dim] : [source.entry().name, source.stamp(), source.choice(), source.mtp()], form.name, ranks].join("|");
    if (wanted !== key) built = build(form, ranks);
    key = wanted;
    return built;
  };

  const now = () => {
    const { tokens, batch, gpu, dtype, weights: bits, tp } = controls.values;
    const mode = source.mode(), base = source.base(), entry = mode === "own" ? base : source.entry(), ranks = Number(tp);
    const form = named(props.formats, dtype), device = named(props.devices, gpu) || null, found = ready(form, ranks);
    const params = mode === "config" ? source.params() : entry.weight_params;
    const weights = params === null ? null : size.weightBytes(params, Number(bits));
    // One device of several holds an even share of the weights.
    const weightsOne = weights === null ? null : (weights + BigInt(ranks) - 1n) / BigInt(ranks);
    const memory = device ? BigInt(device.memory_bytes) : 0n, room = memory - (weightsOne || 0n);
    const each = size.total(found.whole, tokens), here = (list) => BigInt(batch) * size.total(list, tokens);
    const shape = mode === "own" ? { ...controls.values } : source.mtp() || source.choice() ? null : entry.shape;
    return {
      ...found, mode, base, source: entry, title: mode === "own" ? null : entry.title, shape, form, device, tokens, batch, ranks, memory, room, each, here,
      weights, weightsOne, stated: mode === "own" ? null : entry.max_positions, limit: props.token_limit,
      slopeNow: size.slopeAt(found.whole, tokens), total: here(found.whole), read: here(found.reading),
      onOne: here(found.part), onAll: here(found.part) * BigInt(ranks),
      crossing: weights === null ? null : size.crossing(found.part, batch, weightsOne, props.token_limit),
      fits: room < 0n ? 0 : size.longest(found.part, batch, room, props.token_limit),
    };
  };
  return { now, uneven: () => uneven(groups(), Number(controls.values.tp)), suited: (form) => !unsuited(groups(), form) };
};
