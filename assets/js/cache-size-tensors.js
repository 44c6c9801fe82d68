// From a layer's tensors to the pieces of its size, in a cache format and on one of several ranks: the browser's copy of
// explorer/specs/tensors.py and explorer/specs/formats.py. KV.cacheSizeTensors(packedRoles, formats) gives pieces, uneven, unsuited and formatNames.
KV.cacheSizeTensors = (packedRoles, formats) => {
  "use strict";
  const packed = new Set(packedRoles);
  const elementBytes = (name) => formats.find((form) => form.name === name).packing[0] / 8;
  // Whether a tensor is written in the cache's format.
  const takes = ({ role, dtype }) => packed.has(role) && !dtype;
  const plain = (bytes) => [8 * bytes, null, 0];
  // A row's elements, and a scale for each group of them; a group size of 0 is one scale a row.
  const rowBytes = ([bits, groupSize, groupBytes], elements) => {
    const payload = Math.ceil((elements * bits) / 8);
    if (groupSize === null) return BigInt(payload);
    return BigInt(payload + (groupSize === 0 ? 1 : Math.ceil(elements / groupSize)) * groupBytes);
  };
  const evenly = (tensor, ranks) => tensor.replicated || tensor.heads % ranks === 0 || ranks % tensor.heads === 0;
  const headsOnRank = (tensor, ranks) => BigInt(tensor.replicated ? tensor.heads : Math.max(1, Math.floor(tensor.heads / ranks)));

  const piece = (role, weight, heads, bytes, [every, skip, cap]) => ({ tensor: role, bytes: BigInt(weight) * heads * bytes, every, skip, cap });

  // KIVI: Values older than the last R tokens are packed, Keys in runs of R tokens; the rest is as the model computes it.
  const withResidual = ({ role, dim }, terms, form, heads) => {
    const size = form.residual_length, full = rowBytes(plain(form.compute_bytes), dim);
    return terms.flatMap(([weight, every, skip, cap]) => {
      if (every !== 1) return [piece(role, weight, heads, full, [every, skip, cap])];
      if (role === "value") {
        const older = cap === null ? null : Math.max(cap - size, 0), recent = cap === null ? size : Math.min(size, cap);
        return [piece(role, weight, heads, full, [1, skip, recent]), piece(role, weight, heads, rowBytes(form.packing, dim), [1, skip + size, older])];
      }
      // Per channel: groups run along the tokens, so a run of R tokens is dim rows of R elements.
      const saved = BigInt(dim) * rowBytes(form.packing, size) - BigInt(size) * full;
      return [piece(role, weight, heads, full, [1, skip, cap]), piece(role, weight, heads, saved, [size, skip, cap === null ? null : Math.floor(cap / size)])];
    });
  };

  const termsOf = (tensor, reading) => (reading && tensor.read) || tensor.rows || [[1, 1, 0, null]];
  const tensorPieces = (tensor, form, ranks, reading) => {
    const { role, dim } = tensor, terms = termsOf(tensor, reading), heads = headsOnRank(tensor, ranks);
    let packing = plain(tensor.dtype ? elementBytes(tensor.dtype) : form.compute_bytes);
    if (takes(tensor)) {
      if (form.residual_length) return withResidual(tensor, terms, form, heads);
      packing = form.own[role] || form.packing;
    }
    return terms.map(([weight, ...rows]) => piece(role, weight, heads, rowBytes(packing, dim), rows));
  };

  // What one layer of a group keeps, or reads to decode one token; a sharing layer keeps nothing and reads its owner's.
  const pieces = (group, form, ranks, reading = false) =>
    ((reading && group.reads) || group.tensors).flatMap((tensor) => tensorPieces(tensor, form, ranks, reading));
  // The heads of the first tensor that so many ranks cannot share, or 0.
  const uneven = (groups, ranks) => groups.flatMap((group) => group.tensors).find((tensor) => !evenly(tensor, ranks))?.heads || 0;
  // The first tensor that a format is not defined for, or null.
  const unsuited = (groups, form) => (form.roles && groups.flatMap((group) => group.tensors).find((tensor) => takes(tensor) && !form.roles.includes(tensor.role))?.role) || null;
  const formatNames = (group, form) => [...new Set(group.tensors.map((tensor) => (takes(tensor) ? form.name : tensor.dtype || form.compute)))];
  return { pieces, uneven, unsuited, formatNames };
};
