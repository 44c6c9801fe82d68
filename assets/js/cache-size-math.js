// The size of a cache in whole numbers of any length (BigInt): the browser's copy of explorer/specs/pieces.py,
// explorer/estimators/sums.py and explorer/specs/units.py. A test compares them over random settings, far beyond 2^53 bytes.
// A piece is { bytes: BigInt, every, skip, cap }: bytes times min(max(tokens - skip, 0) // every, cap) rows.
KV.cacheSize = (() => {
  "use strict";
  const BINARY = [[1n, "B"], [2n ** 10n, "KiB"], [2n ** 20n, "MiB"], [2n ** 30n, "GiB"], [2n ** 40n, "TiB"], [2n ** 50n, "PiB"]];
  const DECIMAL = [[1n, "B"], [10n ** 3n, "kB"], [10n ** 6n, "MB"], [10n ** 9n, "GB"], [10n ** 12n, "TB"], [10n ** 15n, "PB"]];

  const rows = ({ every, skip, cap }, tokens) => {
    if (!every) return cap || 0;
    const complete = Math.floor(Math.max(tokens - skip, 0) / every);
    return cap === null ? complete : Math.min(complete, cap);
  };
  const total = (pieces, tokens) => pieces.reduce((sum, piece) => sum + piece.bytes * BigInt(rows(piece, tokens)), 0n);
  // The same as a plain number, for drawing.
  const near = (pieces, tokens) => pieces.reduce((sum, piece) => sum + Number(piece.bytes) * rows(piece, tokens), 0);

  // Pieces of one tensor and one number of rows added up; `counted` holds [piece, times].
  const merged = (counted) => {
    const sums = new Map();
    for (const [piece, times] of counted) {
      const key = [piece.tensor, piece.every, piece.skip, piece.cap].join();
      const found = sums.get(key) || { ...piece, bytes: 0n };
      sums.set(key, { ...found, bytes: found.bytes + piece.bytes * BigInt(times) });
    }
    return [...sums.values()].filter((piece) => piece.bytes);
  };

  const gcd = (a, b) => (b ? gcd(b, a % b) : a < 0n ? -a : a);
  const lcm = (numbers) => numbers.reduce((all, n) => (all / gcd(all, n)) * n, 1n);
  const ratio = (n, d) => { const by = gcd(n, d); return { n: n / by, d: d / by }; };
  const added = (fractions) => {
    const d = lcm(fractions.map((item) => item.d));
    return ratio(fractions.reduce((sum, item) => sum + (item.n * d) / item.d, 0n), d);
  };
  const rate = (pieces) => added(pieces.map((piece) => ({ n: piece.bytes, d: BigInt(piece.every) })));
  const fullAt = ({ every, skip, cap }) => skip + every * cap;
  const fills = (piece) => piece.every && piece.cap !== null;

  // Bytes that each further token adds: in the long run, and at this length (what is full or has not begun adds nothing).
  const slope = (pieces) => rate(pieces.filter((piece) => piece.every && piece.cap === null));
  const slopeAt = (pieces, tokens) => rate(pieces.filter((piece) => piece.every && tokens >= piece.skip && (piece.cap === null || tokens < fullAt(piece))));
  // Bytes beside slope times tokens once everything that fills up is full.
  const constant = (pieces) => added(pieces.map((piece) => (piece.cap !== null
    ? { n: piece.bytes * BigInt(piece.cap), d: 1n } : { n: -piece.bytes * BigInt(piece.skip), d: BigInt(piece.every) })));
  // The lengths at which something is full, in order; the last is where slope and constant hold from.
  const bends = (pieces) => [...new Set(pieces.filter((piece) => fills(piece) && piece.bytes > 0n).map(fullAt))].sort((a, b) => a - b);
  const settledAt = (pieces) => Math.max(0, ...pieces.filter(fills).map(fullAt));

  // The longest context for which `batch` caches, and those of every shorter one, take at most `room` bytes; at most `limit`
  // tokens, 0 if none fits. A cache that packs tokens in runs is fullest just before a run closes.
  const longest = (pieces, batch, room, limit) => {
    const period = lcm(pieces.filter((piece) => piece.bytes < 0n).map((piece) => BigInt(piece.every)));
    const peak = (tokens) => {
      const before = tokens - Number((BigInt(tokens) + 1n) % period), here = total(pieces, tokens);
      const there = before > 0 ? total(pieces, before) : 0n;
      return here > there ? here : there;
    };
    let low = 0, high = limit;
    while (low < high) {
      const middle = Math.floor((low + high + 1) / 2);
      if (BigInt(batch) * peak(middle) <= room) low = middle; else high = middle - 1;
    }
    return low;
  };
  // The shortest context whose caches are larger than the weights; null if it lies beyond `limit`.
  const crossing = (pieces, batch, weights, limit) => {
    const below = longest(pieces, batch, weights, limit);
    return below === limit ? null : below + 1;
  };
  const weightBytes = (params, bits) => (BigInt(params) * BigInt(bits) + 7n) / 8n;

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
  // A number of bytes that need not be whole, exact as far as seven decimals go (128 tokens a row need no more).
  const exact = ({ n, d }) => {
    if (n < 0n) return `−${exact({ n: -n, d })}`;
    const scaledUp = (n * 10n ** 7n) / d, rest = String(scaledUp % 10n ** 7n).padStart(7, "0").replace(/0+$/, "");
    return `${(n * 10n ** 7n) % d ? "≈ " : ""}${count(scaledUp / 10n ** 7n)}${rest && "."}${rest} B`;
  };
  // The same with a unit that is easier to read in front.
  const readable = (value) => (value.d === 1n && value.n >= 1024n ? `${binary(value.n)} = ${exact(value)}` : exact(value));
  const minus = (a, b) => added([a, { n: -b.n, d: b.d }]);
  const times = (a, whole) => ratio(a.n * BigInt(whole), a.d);

  return {
    total, near, merged, slope, slopeAt, constant, bends, settledAt, longest, crossing, weightBytes,
    binary, decimal, count, tokens, exact, readable, sum: added, minus, times,
  };
})();
