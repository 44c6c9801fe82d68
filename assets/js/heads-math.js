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

  const gcd = (a, b) => (b ? gcd(b, a % b) : a);
  // How many times smaller than MHA, hundredths rounded half up, and the share of it as a fraction in lowest terms.
  const ratio = (s) => {
    const whole = mha(s), part = total(s), hundredths = (200n * whole + part) / (2n * part), common = gcd(whole, part);
    const decimals = String(hundredths % 100n).padStart(2, "0");
    return {
      times: `${(hundredths / 100n).toLocaleString("en-US")}${decimals === "00" ? "" : `.${decimals}`}`,
      exact: (hundredths * part) === whole * 100n,
      share: part === whole ? "1" : `${part / common}/${whole / common}`,
    };
  };
  const count = (n) => n.toLocaleString("en-US");
  return { divisors, kind, elements, layerBytes, owners, total, mhaElements, mhaLayer, mha, ratio, count };
})();
