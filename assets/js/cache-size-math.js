// The size of a cache in whole numbers of any length (BigInt): the browser's copy of explorer/estimators/memory.py for
// uniform layers, and of explorer/specs/units.py. A test compares the two over random settings, far beyond 2^53 bytes.
KV.cacheSize = (() => {
  "use strict";
  const BINARY = [[1n, "B"], [2n ** 10n, "KiB"], [2n ** 20n, "MiB"], [2n ** 30n, "GiB"], [2n ** 40n, "TiB"], [2n ** 50n, "PiB"]];
  const DECIMAL = [[1n, "B"], [10n ** 3n, "kB"], [10n ** 6n, "MB"], [10n ** 9n, "GB"], [10n ** 12n, "TB"], [10n ** 15n, "PB"]];

  // What one token of one sequence adds: a Key and a Value, in every layer, for every KV head.
  const perToken = (s) => 2n * BigInt(s.layers) * BigInt(s.kv_heads) * BigInt(s.head_dim) * BigInt(s.element_bytes);
  const total = (s) => perToken(s) * BigInt(s.tokens) * BigInt(s.batch);
  const weightBytes = (params, bits) => (BigInt(params) * BigInt(bits) + 7n) / 8n;

  // The longest context whose caches fit into `room` bytes; at most `limit` tokens, 0 if none fits.
  const longest = (s, room, limit) => {
    const most = room < 0n ? 0n : room / (perToken(s) * BigInt(s.batch));
    return most < BigInt(limit) ? most : BigInt(limit);
  };
  // The shortest context whose caches are larger than the weights; null if it lies beyond `limit`.
  const crossing = (s, weights, limit) => {
    const below = longest(s, weights, limit);
    return below === BigInt(limit) ? null : below + 1n;
  };

  const count = (n) => n.toLocaleString("en-US");
  const hundredths = (n, unit) => (200n * n + unit) / (2n * unit);
  const inUnit = (n, unit) => `${count(hundredths(n, unit) / 100n)}.${String(hundredths(n, unit) % 100n).padStart(2, "0")}`;
  const scaled = (n, units) => {
    // 1,023.996 KiB would round to "1,024.00 KiB": then the next unit says it better.
    const index = units.findIndex(([size], i) => i === units.length - 1 || hundredths(n, size) < 100n * (units[i + 1][0] / size));
    const [size, name] = units[index];
    return index === 0 ? `${count(n)} B` : `${inUnit(n, size)} ${name}`;
  };
  const binary = (n) => scaled(n, BINARY);
  const decimal = (n) => scaled(n, DECIMAL);
  const tokens = (n) => {
    for (const [size, name] of [[2 ** 20, "Mi"], [2 ** 10, "Ki"]]) {
      if (n >= size && n % size === 0) return `${count(n)} (${count(n / size)} ${name})`;
    }
    return count(n);
  };

  return { perToken, total, weightBytes, longest, crossing, binary, decimal, count, tokens };
})();
