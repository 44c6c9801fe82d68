// Arithmetic intensity in whole numbers (BigInt): the browser's copy of explorer/estimators/roofline.py; a test compares
// the two over random settings. Work is {flops, bytes}; Queries, activations and outputs are bf16 whatever is stored.
KV.roofline = (() => {
  "use strict";
  const ACTIVATION = 2n, big = BigInt;
  const gemm = (rows, inner, columns, weight) => ({
    flops: 2n * big(rows) * big(inner) * big(columns),
    bytes: big(inner) * big(columns) * big(weight) + big(rows) * (big(inner) + big(columns)) * ACTIVATION,
  });
  const grouped = (heads, kv, dim, len, batch, element) => ({
    flops: big(batch) * 4n * big(heads) * big(dim) * big(len),
    bytes: big(batch) * (2n * big(kv) * big(dim) * big(len) * big(element) + 2n * big(heads) * big(dim) * ACTIVATION),
  });
  const latent = (heads, c, position, len, batch, element) => {
    const scored = big(c) + big(position), both = scored + big(c);
    return {
      flops: big(batch) * 2n * big(heads) * big(len) * both,
      bytes: big(batch) * (big(len) * scored * big(element) + big(heads) * both * ACTIVATION),
    };
  };
  const intensity = (work) => Number(work.flops) / Number(work.bytes);
  const bound = (work, device) => Math.max(Number(work.flops) / device.flops, Number(work.bytes) / device.bandwidth);
  const ridge = (device) => device.flops / device.bandwidth;
  const reachable = (x, device) => Math.min(device.flops, x * device.bandwidth);

  // Three digits that count: "2.86 ms", "989 TFLOP/s", "0.998".
  const digits = (n) => (n === 0 ? "0" : n >= 999.5 ? KV.number(Math.round(n)) : n.toPrecision(3));
  const scaled = (n, steps) => {
    const [size, name] = steps.find(([step]) => n >= step * 0.9995) || steps[steps.length - 1];
    return `${digits(n / size)} ${name}`;
  };
  const seconds = (n) => scaled(n, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
  const flops = (n, unit) => scaled(n, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]) + unit;
  return { gemm, grouped, latent, intensity, bound, ridge, reachable, digits, seconds, flops };
})();
