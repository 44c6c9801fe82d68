// The arithmetic of the page "Worked example" in whole numbers of any length (BigInt): the browser's copy of
// explorer/estimators/capacity.py, transfer.py and sharing.py for a model whose layers are alike. A test compares them.
KV.workedMath = (() => {
  "use strict";
  const size = KV.cacheSize, NS = 10n ** 9n;
  const UNITS = [[1n, "ns"], [10n ** 3n, "µs"], [10n ** 6n, "ms"], [NS, "s"]];
  const divided = (above, below) => (2n * above + below) / (2n * below);
  const up = (above, below) => (above + below - 1n) / below;

  const transferNs = (bytes, perSecond) => divided(bytes * NS, perSecond);
  const duration = (ns) => {
    const index = UNITS.findIndex(([unit], i) => i === UNITS.length - 1 || divided(1000n * ns, unit) < 1000n * (UNITS[i + 1][0] / unit));
    const [unit, name] = UNITS[index], thousandths = divided(1000n * ns, unit);
    return index === 0 ? `${size.count(ns)} ns` : `${size.count(thousandths / 1000n)}.${String(thousandths % 1000n).padStart(3, "0")} ${name}`;
  };

  // A rank keeps its share of the KV heads, and never less than one.
  const headsOnRank = (model, tp) => Math.max(1, model.kv_heads / tp);
  // A Key and a Value in every layer, for every KV head.
  const perToken = (model, elementBytes, tp = 1) =>
    2n * BigInt(model.layers) * BigInt(headsOnRank(model, tp)) * BigInt(model.head_dim) * BigInt(elementBytes);
  const rankWeights = (model, bits, tp) => up(up(BigInt(model.weight_params) * BigInt(bits), 8n), BigInt(tp));

  // s: {model, tokens, requests, element_bytes, bits, tp} and, as BigInt, {memory, reserve}
  const rankUse = (s) => {
    const weights = rankWeights(s.model, s.bits, s.tp), each = perToken(s.model, s.element_bytes, s.tp) * BigInt(s.tokens);
    const kv = each * BigInt(s.requests), room = s.memory - weights - s.reserve;
    return { memory: s.memory, reserve: s.reserve, weights, each, kv, room, free: room - kv, fit: room > 0n ? room / each : 0n };
  };

  // s: {model, tokens, requests, element_bytes, bits, tp} and, as BigInt, {bandwidth} in bytes per second of one rank
  const step = (s) => {
    const weights = rankWeights(s.model, s.bits, s.tp), each = perToken(s.model, s.element_bytes, s.tp) * BigInt(s.tokens);
    const kv = each * BigInt(s.requests), total = weights + kv;
    return {
      weights, each, kv, total, ns: transferNs(total, s.bandwidth), kvNs: transferNs(kv, s.bandwidth), eachNs: transferNs(each, s.bandwidth),
      weightsNs: transferNs(weights, s.bandwidth), bytesPerToken: divided(total, BigInt(s.requests)), evenBatch: up(weights, each),
      tokensPerSecond: divided(BigInt(s.requests) * s.bandwidth, total),
    };
  };

  // Only full blocks are shared, and never a request's last token: its logits are wanted.
  const sharing = (each, requests, tokens, prefix, block) => {
    const shared = Math.floor(Math.min(prefix, tokens - 1) / block) * block, saved = (requests - 1) * shared;
    const blocks = requests * Math.ceil(tokens / block), apart = each * BigInt(requests * tokens);
    return {
      shared, unshared: prefix - shared, apart, once: apart - each * BigInt(saved), saved: each * BigInt(saved), savedPrefill: saved,
      prefill: requests * tokens - saved, tail: each * BigInt(blocks * block - requests * tokens),
    };
  };

  const move = (tokens, each, link, prefill) => ({
    bytes: BigInt(tokens) * each, loadNs: transferNs(BigInt(tokens) * each, link), loadRate: divided(link, each),
    recomputeNs: divided(BigInt(tokens) * NS, BigInt(prefill)), even: BigInt(prefill) * each,
  });

  // part of whole as a percentage with one decimal, and a quotient with two, both rounded half up
  const percent = (part, whole) => { const n = divided(1000n * part, whole); return `${size.count(n / 10n)}.${n % 10n}%`; };
  const times = (above, below) => { const n = divided(100n * above, below); return `${size.count(n / 100n)}.${String(n % 100n).padStart(2, "0")}`; };
  const both = (n) => (n < 1000n ? size.binary(n) : `${size.binary(n)} = ${size.decimal(n)}`);

  return { divided, transferNs, duration, headsOnRank, perToken, rankWeights, rankUse, step, sharing, move, percent, times, both };
})();
