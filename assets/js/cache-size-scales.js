// The axes of the growth figure: from tokens and bytes to pixels and back, with ticks in powers of two.
KV.cacheSizeScales = (() => {
  "use strict";
  const MAX_X = 2 ** 24, LOW_Y = 2 ** 20, HIGH_Y = 2 ** 44;

  const short = (n, base, names) => {
    let unit = 0;
    while (n >= base && unit < names.length - 1) { n /= base; unit += 1; }
    return `${KV.number(n, n < 10 && n % 1 ? 1 : 0)}${names[unit]}`;
  };
  const tokensShort = (n) => short(n, 1024, ["", " Ki", " Mi"]);
  const bytesShort = (n) => short(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);

  // Doubling steps, or 4 to 8 steps of one power of two. `at` stays inside the axis, `free` does not.
  const logScale = (low, high, from, to) => {
    const octaves = Math.log2(high / low), ticks = [];
    for (let value = low; value <= high; value *= 16) ticks.push(value);
    const free = (value) => from + ((to - from) * Math.log2(Math.max(value, low / 2 ** 20) / low)) / octaves;
    return {
      ticks, low, high, free,
      at: (value) => free(Math.min(high, Math.max(low, value))),
      back: (pixel) => low * 2 ** ((octaves * (pixel - from)) / (to - from)),
    };
  };
  const linearScale = (most, from, to) => {
    const step = 2 ** Math.floor(Math.log2(most) - 2), high = Math.ceil(most / step) * step, ticks = [];
    for (let value = 0; value <= high; value += step) ticks.push(value);
    const free = (value) => from + ((to - from) * value) / high;
    return {
      ticks, low: 0, high, free,
      at: (value) => free(Math.min(high, Math.max(0, value))),
      back: (pixel) => (high * (pixel - from)) / (to - from),
    };
  };

  // Both axes for what is shown; `area` is { left, right, top, bottom } in pixels, `view.bytes(tokens)` the curve.
  const both = (view, { left, right, top, bottom }) => {
    if (view.log) {
      let low = LOW_Y, high = HIGH_Y;
      while (view.bytes(MAX_X) < low * 16 && low > 1) low /= 16;
      while (view.bytes(view.tokens) > high) high *= 16;
      return [logScale(1, MAX_X, left, right), logScale(low, high, bottom, top)];
    }
    // A crossing far away would press what happens near the setting flat against the axis.
    const near = view.crossing && view.crossing <= 16 * view.tokens ? Math.max(view.tokens, view.crossing) : 1.5 * view.tokens;
    const most = 1.08 * Math.max(near, view.fits <= 16 * near ? view.fits : 0, 16);
    const across = linearScale(Math.min(MAX_X, most), left, right);
    const reach = view.bytes(Math.round(across.high));
    // The line of the weights is shown if the curve is not pressed flat by it.
    return [across, linearScale(1.08 * Math.max(reach, view.weights <= 4 * reach ? view.weights : 0, 1), bottom, top)];
  };
  return { both, tokensShort, bytesShort, MAX_X };
})();
