// The growth figure of the page "Cache size": cache bytes against tokens, with the weights and the GPU's memory as lines.
// KV.cacheSizePlot(host, kv) gives draw(view); a view holds plain numbers (see cache-size.js). Redrawn whole each time.
KV.cacheSizePlot = (host, kv, onPick) => {
  "use strict";
  const MARGIN = { top: 14, right: 20, bottom: 42, left: 62 };
  const MAX_X = 2 ** 24, LOW_Y = 2 ** 20, HIGH_Y = 2 ** 44;
  const svg = host.appendChild(kv.svg("svg", { class: "cs-plot", role: "img" }));
  let view = null, x = null, width = 0;

  const short = (n, base, names) => {
    let unit = 0;
    while (n >= base && unit < names.length - 1) { n /= base; unit += 1; }
    return `${KV.number(n, n < 10 && n % 1 ? 1 : 0)}${names[unit]}`;
  };
  const tokensShort = (n) => short(n, 1024, ["", " Ki", " Mi"]);
  const bytesShort = (n) => short(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);

  // A scale from values to pixels, with its ticks: doubling steps, or 4 to 8 steps of one power of two.
  const logScale = (low, high, from, to) => {
    const octaves = Math.log2(high / low), ticks = [];
    for (let value = low; value <= high; value *= 16) ticks.push(value);
    return {
      ticks, low, high,
      at: (value) => from + ((to - from) * Math.log2(Math.min(high, Math.max(low, value)) / low)) / octaves,
      back: (pixel) => low * 2 ** ((octaves * (pixel - from)) / (to - from)),
    };
  };
  const linearScale = (most, from, to) => {
    const step = 2 ** Math.floor(Math.log2(most) - 2), high = Math.ceil(most / step) * step, ticks = [];
    for (let value = 0; value <= high; value += step) ticks.push(value);
    return {
      ticks, low: 0, high,
      at: (value) => from + ((to - from) * Math.min(high, Math.max(0, value))) / high,
      back: (pixel) => (high * (pixel - from)) / (to - from),
    };
  };

  const scales = (height) => {
    const left = MARGIN.left, right = width - MARGIN.right, bottom = height - MARGIN.bottom, top = MARGIN.top;
    if (view.log) {
      let low = LOW_Y, high = HIGH_Y;
      while (view.slope * MAX_X < low * 16 && low > 1) low /= 16;
      while (view.total > high) high *= 16;
      return [logScale(1, MAX_X, left, right), logScale(low, high, bottom, top)];
    }
    const near = Math.max(view.tokens, view.crossing || 0);
    const most = 1.08 * Math.max(near, view.fits <= 16 * near ? view.fits : 0, 16);
    const across = linearScale(Math.min(MAX_X, most), left, right);
    return [across, linearScale(1.08 * Math.max(view.slope * across.high, Math.min(view.weights, view.slope * across.high * 4)), bottom, top)];
  };

  const grid = (y, bottom) => [
    ...x.ticks.map((value) => kv.svg("g", {},
      kv.svg("line", { class: "cs-grid", x1: x.at(value), x2: x.at(value), y1: MARGIN.top, y2: bottom }),
      kv.svg("text", { x: x.at(value), y: bottom + 17, "text-anchor": "middle" }, tokensShort(value)))),
    ...y.ticks.map((value) => kv.svg("g", {},
      kv.svg("line", { class: "cs-grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y.at(value), y2: y.at(value) }),
      kv.svg("text", { x: MARGIN.left - 7, y: y.at(value) + 4, "text-anchor": "end" }, bytesShort(value)))),
    kv.svg("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: bottom + 36, "text-anchor": "middle" }, kv.t("axis-x")),
  ];

  // Labels of horizontal lines stand above them, where the curve has not come yet; where two lines are close, the upper
  // one's label moves up.
  const spread = (items, top) => {
    const sorted = [...items].sort((a, b) => b.y - a.y);
    sorted.forEach((item, i) => { item.text = Math.min(item.y - 6, i ? sorted[i - 1].text - 16 : Infinity); });
    for (let i = sorted.length - 1, ceiling = top + 12; i >= 0; i -= 1, ceiling += 16) sorted[i].text = Math.max(sorted[i].text, ceiling);
    return sorted;
  };

  const line = (item) => kv.svg("line", { class: `cs-line is-${item.kind}`, x1: MARGIN.left, x2: width - MARGIN.right, y1: item.y, y2: item.y });
  const SHAPES = {
    here: (cx, cy) => kv.svg("circle", { class: "cs-here", cx, cy, r: 6.5 }),
    crossing: (cx, cy) => kv.svg("path", { class: "cs-crossing", d: `M${cx} ${cy - 8}l8 8l-8 8l-8-8z` }),
    fits: (cx, cy) => kv.svg("rect", { class: "cs-fits", x: cx - 6, y: cy - 6, width: 12, height: 12 }),
  };
  const mark = (kind, at, y, bottom) => {
    const cx = x.at(at), cy = y.at(view.slope * at);
    return [kv.svg("line", { class: "cs-drop", x1: cx, x2: cx, y1: cy, y2: bottom }), SHAPES[kind](cx, cy)];
  };

  const draw = (next) => {
    view = next || view;
    width = host.clientWidth;
    if (!view || !width) return;
    const height = Math.round(Math.min(430, Math.max(300, width * 0.6))), bottom = height - MARGIN.bottom;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const [across, y] = scales(height);
    x = across;
    const above = view.lines.filter((item) => item.bytes > y.high).map((item) => item.label);
    const shown = view.lines.filter((item) => item.bytes > y.low && item.bytes <= y.high);
    const lines = spread(shown.map((item) => ({ ...item, y: y.at(item.bytes) })), MARGIN.top + (above.length ? 16 : 0));
    const first = view.log ? Math.max(1, y.low / view.slope) : 0, last = Math.min(x.high, y.high / view.slope);
    const stated = view.stated && view.stated < x.high
      ? kv.svg("rect", { class: "cs-beyond", x: x.at(view.stated), width: x.at(x.high) - x.at(view.stated), y: MARGIN.top, height: bottom - MARGIN.top })
      : null;
    svg.replaceChildren(...[
      stated, ...grid(y, bottom), ...lines.map(line),
      kv.svg("line", { class: "cs-curve", x1: x.at(first), y1: y.at(view.slope * first), x2: x.at(last), y2: y.at(view.slope * last) }),
      ...(view.crossing && view.crossing <= x.high ? mark("crossing", view.crossing, y, bottom) : []),
      ...(view.fits && view.fits <= x.high ? mark("fits", view.fits, y, bottom) : []),
      ...mark("here", view.tokens, y, bottom),
      ...lines.map((item) => kv.svg("text", { class: `cs-label is-${item.kind}`, x: MARGIN.left + 7, y: item.text }, item.label)),
      above.length ? kv.svg("text", { class: "cs-label", x: MARGIN.left + 7, y: MARGIN.top + 12 }, `↑ ${above.join(" · ")}`) : null,
      stated ? kv.svg("text", { class: "cs-label", x: width - MARGIN.right - 5, y: bottom - 7, "text-anchor": "end" }, kv.t("beyond-short")) : null,
    ].filter(Boolean));
  };

  const pick = (event) => {
    if (!x || (event.type === "pointermove" && event.buttons !== 1)) return;
    if (event.type === "pointerdown") svg.setPointerCapture(event.pointerId);
    const pixel = ((event.clientX - svg.getBoundingClientRect().left) * width) / svg.clientWidth;
    onPick(Math.round(Math.min(x.high, Math.max(1, x.back(pixel)))));
  };
  svg.addEventListener("pointerdown", pick);
  svg.addEventListener("pointermove", pick);
  new ResizeObserver(() => { if (host.clientWidth !== width) draw(); }).observe(host);
  return { draw, describe: (words) => svg.setAttribute("aria-label", words) };
};
