// What a token leaves behind, in whole numbers (BigInt): the browser's copy of explorer/specs for like layers. A test
// compares it with the layer kinds and explorer/estimators/memory.py over random settings.
KV.heads = (() => {
  "use strict";
  // A setting: heads, kv_heads, head_dim, latent, rope, span, layers, element_bytes. latent 0 stores Keys and Values themselves.
  const divisors = (n) => Array.from({ length: n }, (_, i) => i + 1).filter((d) => n % d === 0);
  const kind = (s) => (s.latent > 0 ? "mla" : s.kv_heads === s.heads ? "mha" : s.kv_heads === 1 ? "mqa" : "gqa");
  const elements = (s) => (s.latent > 0 ? BigInt(s.latent) + BigInt(s.rope) : 2n * BigInt(s.kv_heads) * BigInt(s.head_dim));
  const layerBytes = (s) => elements(s) * BigInt(s.element_bytes);
  // Layers in groups of `span`: the first of each group keeps, the others read what it kept.
  const owners = (s) => Math.ceil(s.layers / s.span);
  const total = (s) => layerBytes(s) * BigInt(owners(s));
  const mhaElements = (s) => 2n * BigInt(s.heads) * BigInt(s.head_dim);
  const mhaLayer = (s) => mhaElements(s) * BigInt(s.element_bytes);
  const mha = (s) => mhaLayer(s) * BigInt(s.layers);

  const count = (n) => n.toLocaleString("en-US");
  // top/bottom with at most `digits` decimals, rounded half up; zeros at the end are dropped.
  const decimal = (top, bottom, digits) => {
    const unit = 10n ** BigInt(digits), n = (2n * unit * top + bottom) / (2n * bottom), rest = String(n % unit).padStart(digits, "0").replace(/0+$/, "");
    return `${count(n / unit)}${rest && "."}${rest}`;
  };
  // Against MHA: `kind` names the sentence that is true ("same", "unit" for 1/n, "percent", "larger"), `exact` whether its numbers are.
  const ratio = (s) => {
    const whole = mha(s), part = total(s), [large, small] = part > whole ? [part, whole] : [whole, part];
    return {
      kind: part === whole ? "same" : part > whole ? "larger" : whole % part === 0n ? "unit" : "percent",
      times: decimal(large, small, 2), percent: decimal(100n * part, whole, 2),
      exact: (100n * large) % small === 0n && (part > whole || (10_000n * part) % whole === 0n || whole % part === 0n),
    };
  };
  // Operations of a decode step's attention for each byte that it reads, at a long context: [operations, bytes] of one token.
  // Scores and sum are a multiply-add each; with absorbed matrices every head works on the latent itself.
  const work = (s) => [2n * BigInt(s.heads) * BigInt(s.latent > 0 ? 2 * s.latent + s.rope : 2 * s.head_dim), layerBytes(s)];
  const intensity = (s) => decimal(...work(s), 2);
  return { divisors, kind, elements, layerBytes, owners, total, mhaElements, mhaLayer, mha, ratio, intensity, count };
})();
