// The growth figure of the page "Cache size": cache bytes against tokens, with the weights and the GPU's memory as lines.
// KV.cacheSizePlot(host, kv, onPick) gives draw(view); a view holds plain numbers and functions of tokens (see cache-size.js).
// Several kinds of layer are lines of their own on logarithmic axes and stacked areas on linear ones. Redrawn whole each time.
KV.cacheSizePlot = (host, kv, onPick) => {
  "use strict";
  const MARGIN = { top: 14, right: 20, bottom: 42, left: 62 }, STEPS = 160;
  const { both, tokensShort, bytesShort } = KV.cacheSizeScales;
  const svg = host.appendChild(kv.svg("svg", { class: "cs-plot", role: "img" })), clip = kv.unique();
  let view = null, x = null, width = 0;

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

  // Whole numbers of tokens, evenly spread over the axis, with every place where something happens.
  const lengths = () => {
    const found = new Set([...view.bends, view.tokens, view.crossing || 1, view.fits || 1]);
    for (let i = 0; i <= STEPS; i += 1) {
      found.add(Math.max(1, Math.round(view.log ? x.low * (x.high / x.low) ** (i / STEPS) : (x.high * i) / STEPS)));
    }
    return [...found].filter((value) => value <= x.high).sort((a, b) => a - b);
  };
  const points = (at, y, bytes) => at.map((value) => `${x.at(value).toFixed(2)},${y.free(bytes(value)).toFixed(2)}`);
  const letter = (kind, px, py) => kv.svg("text", { class: `cs-letter cs-kind-${kind.colour}`, x: px, y: py, "text-anchor": "end" }, kind.letter);

  const areas = (at, y) => {
    const below = at.map(() => 0), end = at.length - 1;
    return view.kinds.flatMap((kind) => {
      const floor = at.map((value, i) => `${x.at(value).toFixed(2)},${y.free(below[i]).toFixed(2)}`).reverse(), before = below[end];
      at.forEach((value, i) => { below[i] += kind.bytes(value); });
      const roof = at.map((value, i) => `${x.at(value).toFixed(2)},${y.free(below[i]).toFixed(2)}`);
      const room = y.free(before) - y.free(below[end]);
      return [
        kv.svg("polygon", { class: `cs-area cs-kind-${kind.colour}`, "data-kind": kind.kind, points: [...roof, ...floor].join(" ") }),
        room > 14 ? letter(kind, x.at(at[end]) - 5, (y.free(before) + y.free(below[end])) / 2 + 5) : null,
      ];
    });
  };
  // Letters of lines that end near one another stand side by side.
  const strands = (at, y) => {
    const taken = [];
    return view.kinds.flatMap((kind) => {
      const end = y.at(kind.bytes(at[at.length - 1])), beside = taken.filter((other) => Math.abs(other - end) < 15).length;
      taken.push(end);
      return [
        kv.svg("polyline", { class: `cs-strand cs-kind-${kind.colour}`, "data-kind": kind.kind, points: points(at, y, kind.bytes).join(" ") }),
        letter(kind, x.at(x.high) - 4 - 15 * beside, end + 15),
      ];
    });
  };

  const line = (item) => kv.svg("line", { class: `cs-line is-${item.kind}`, x1: MARGIN.left, x2: width - MARGIN.right, y1: item.y, y2: item.y });
  const SHAPES = {
    here: (cx, cy) => kv.svg("circle", { class: "cs-here", cx, cy, r: 6.5 }),
    crossing: (cx, cy) => kv.svg("path", { class: "cs-crossing", d: `M${cx} ${cy - 8}l8 8l-8 8l-8-8z` }),
    fits: (cx, cy) => kv.svg("rect", { class: "cs-fits", x: cx - 6, y: cy - 6, width: 12, height: 12 }),
  };
  const mark = (kind, at, y, bottom) => {
    const cx = x.at(at), cy = y.at(view.bytes(at));
    return [kv.svg("line", { class: "cs-drop", x1: cx, x2: cx, y1: cy, y2: bottom }), SHAPES[kind](cx, cy)];
  };
  // Where a window, a top-k or a state is full: the slope changes there.
  const bends = (y) => {
    let last = -Infinity;
    return view.bends.filter((at) => at > 1 && at <= x.high).flatMap((at) => {
      const cx = x.at(at), cy = y.at(view.bytes(at)), room = cx - last > 90 && cx < width - MARGIN.right - 110;
      // On the axis itself there is nothing to see.
      if (cx < MARGIN.left + 10) return [];
      if (room) last = cx;
      return [kv.svg("circle", { class: "cs-bend", cx, cy, r: 4.5 }),
        room ? kv.svg("text", { class: "cs-label cs-bend-label", x: cx + 7, y: Math.min(cy + 19, y.at(y.low) - 5) }, kv.t("bend", { n: KV.number(at) })) : null];
    });
  };

  const draw = (next) => {
    view = next || view;
    width = host.clientWidth;
    if (!view || !width) return;
    const height = Math.round(Math.min(430, Math.max(300, width * 0.6))), bottom = height - MARGIN.bottom, right = width - MARGIN.right;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const [across, y] = both(view, { left: MARGIN.left, right, top: MARGIN.top, bottom });
    x = across;
    const above = view.lines.filter((item) => item.bytes > y.high).map((item) => item.label);
    const shown = view.lines.filter((item) => item.bytes > y.low && item.bytes <= y.high);
    const lines = spread(shown.map((item) => ({ ...item, y: y.at(item.bytes) })), MARGIN.top + 16 * above.length);
    const at = lengths(), several = view.kinds.length > 1;
    const stated = view.stated && view.stated < x.high
      ? kv.svg("rect", { class: "cs-beyond", x: x.at(view.stated), width: x.at(x.high) - x.at(view.stated), y: MARGIN.top, height: bottom - MARGIN.top })
      : null;
    const inside = kv.svg("g", { "clip-path": `url(#${clip})` }, ...[
      ...(several ? (view.log ? strands(at, y) : areas(at, y)) : []),
      kv.svg("polyline", { class: "cs-curve", points: points(at, y, view.bytes).join(" ") }),
    ].filter(Boolean));
    svg.replaceChildren(...[
      kv.svg("clipPath", { id: clip }, kv.svg("rect", { x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top })),
      stated, ...grid(y, bottom), ...lines.map(line), inside, ...bends(y),
      ...(view.crossing && view.crossing <= x.high ? mark("crossing", view.crossing, y, bottom) : []),
      ...(view.fits && view.fits <= x.high ? mark("fits", view.fits, y, bottom) : []),
      ...mark("here", view.tokens, y, bottom),
      ...lines.map((item) => kv.svg("text", { class: `cs-label is-${item.kind}`, x: MARGIN.left + 7, y: item.text }, item.label)),
      ...above.map((label, i) => kv.svg("text", { class: "cs-label", x: MARGIN.left + 7, y: MARGIN.top + 12 + 16 * i }, `↑ ${label}`)),
      stated ? kv.svg("text", { class: "cs-label", x: right - 5, y: bottom - 7, "text-anchor": "end" }, kv.t("beyond-short")) : null,
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
