// Online softmax for one Query, in the browser's own doubles. A state is {m, l, u}: the largest score so far, the sum of
// exp(score - m), and the same sum weighted by the Values. A test runs all of it against Python over random settings.
KV.flashAttention = (() => {
  "use strict";
  const NOTHING = -Infinity, most = (scores) => scores.reduce((a, b) => Math.max(a, b), NOTHING);
  const weighted = (weights, values, dim) => Array.from({ length: dim }, (_, d) => weights.reduce((sum, w, j) => sum + w * values[j][d], 0));
  const start = (dim) => ({ m: NOTHING, l: 0, u: Array(dim).fill(0) });

  // One block. `factor` is exp(m - m_new). Where nothing was seen yet, m_new is -inf and -inf - -inf would be NaN: 0 then
  // stands for the maximum, so that every exp(-inf - 0) is 0.
  const fold = (state, scores, values) => {
    const top = most(scores), m = Math.max(state.m, top), base = m === NOTHING ? 0 : m;
    const factor = Math.exp(state.m - base), p = scores.map((s) => Math.exp(s - base));
    const sum = p.reduce((a, b) => a + b, 0), part = weighted(p, values, state.u.length);
    const shrunk = { m, l: factor * state.l, u: state.u.map((x) => factor * x) };
    return { top, factor, p, sum, part, shrunk, after: { m, l: shrunk.l + sum, u: shrunk.u.map((x, d) => x + part[d]) } };
  };

  // Blocks as lists of positions, in the order of `order`. The shuffle is always the same one, so that a link shows it again.
  const blocks = (length, size, order = "given") => {
    const list = Array.from({ length: Math.ceil(length / size) }, (_, b) => Array.from({ length: Math.min(size, length - b * size) }, (_, i) => b * size + i));
    if (order === "reversed") return list.reverse();
    if (order !== "shuffled") return list;
    let seed = 20220527;
    for (let i = list.length - 1; i > 0; i--) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      const j = Math.floor((seed / 2147483648) * (i + 1));
      [list[i], list[j]] = [list[j], list[i]];
    }
    // The blocks as they came would show nothing.
    if (list.length > 1 && list.every(([first], i) => first === i * size)) list.push(list.shift());
    return list;
  };

  const pick = (list, at) => at.map((j) => list[j]);
  const run = (scores, values, size, order) => {
    let state = start(values[0].length);
    return blocks(scores.length, size, order).map((at) => {
      const step = { at, before: state, ...fold(state, pick(scores, at), pick(values, at)) };
      state = step.after;
      return step;
    });
  };
  // A Query that sees nothing has no softmax; as in the kernels, its output is 0.
  const output = (state) => state.u.map((x) => (state.l === 0 ? 0 : x / state.l));
  const lse = (state) => (state.l === 0 ? NOTHING : state.m + Math.log(state.l));
  const whole = (scores, values) => {
    const m = most(scores), dim = values[0].length;
    if (m === NOTHING) return { m, weights: scores.map(() => 0), output: Array(dim).fill(0) };
    const e = scores.map((s) => Math.exp(s - m)), sum = e.reduce((a, b) => a + b, 0), weights = e.map((x) => x / sum);
    return { m, weights, output: weighted(weights, values, dim) };
  };

  // Two states of different Keys become the state of all of them.
  const merge = (a, b) => {
    const m = Math.max(a.m, b.m), base = m === NOTHING ? 0 : m, [fa, fb] = [Math.exp(a.m - base), Math.exp(b.m - base)];
    return { m, l: fa * a.l + fb * b.l, u: a.u.map((x, d) => fa * x + fb * b.u[d]) };
  };
  const gap = (a, b) => Math.max(...a.map((x, d) => Math.abs(x - b[d])));

  // fp16 as a GPU stores it: 11 bits of significand, the least step 2^-24, infinite from 65,520 on.
  const half = (x) => {
    if (!Number.isFinite(x) || x === 0) return x;
    if (Math.abs(x) >= 65520) return Math.sign(x) * Infinity;
    const unit = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(x)))) - 10), n = x / unit, low = Math.floor(n), rest = n - low;
    return (rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low) * unit;
  };
  const ROUND = { fp16: half, fp32: Math.fround };
  // The formula without a maximum, every result rounded to the format.
  const bare = (scores, values, format) => {
    const round = ROUND[format], e = scores.map((s) => round(Math.exp(round(s)))), sum = e.reduce((a, b) => round(a + b), 0);
    const top = values[0].map((_, d) => e.reduce((a, w, j) => round(a + round(w * round(values[j][d]))), 0));
    return { largest: most(e), sum, output: top.map((x) => round(x / sum)) };
  };

  // "1.5, -2, -inf" as numbers, or null. Fullwidth commas and minus signs are taken too.
  const parse = (text, [fewest, mostMany], limit) => {
    const words = text.replace(/[，、;；]/g, ",").replace(/[−–]/g, "-").replace(/∞/g, "inf").split(/[\s,]+/).filter(Boolean);
    const numbers = words.map((word) => (/^-inf(inity)?$/i.test(word) ? NOTHING : /^[+-]?(\d+\.?\d*|\.\d+)$/.test(word) ? Number(word) : NaN));
    const good = numbers.length >= fewest && numbers.length <= mostMany && numbers.every((n) => n === NOTHING || Math.abs(n) <= limit);
    return good ? numbers : null;
  };
  // "(1, 0), (0.5, -1)", or the same without brackets, as pairs of numbers, or null.
  const pairs = (text, mostMany, limit) => {
    const numbers = parse(text.replace(/[()（）[\]]/g, " "), [2, 2 * mostMany], limit);
    if (numbers === null || numbers.length % 2 !== 0 || numbers.includes(NOTHING)) return null;
    return Array.from({ length: numbers.length / 2 }, (_, i) => numbers.slice(2 * i, 2 * i + 2));
  };
  // Values of `length` Keys: where too few were given, they begin again.
  const spread = (values, length) => Array.from({ length }, (_, j) => values[j % values.length]);
  return { NOTHING, start, fold, blocks, run, output, lse, whole, merge, gap, bare, half, parse, pairs, spread, most };
})();
