// The drawing of the online softmax: scores as bars, in their blocks, and below them exp(score - m) for what has been read.
// KV.flashDraw(host, kv) gives draw(state): the lower bars add up to l, and shrink together when m rises.
KV.flashDraw = (host, kv) => {
  "use strict";
  const { svg } = kv, LEFT = 26, RIGHT = 30, TOP = 34, SCORES = 104, FOOT = 206, WEIGHTS = 74, HEIGHT = 300, GAP = 12;
  const root = host.appendChild(svg("svg", { class: "fa-plot", role: "img", height: HEIGHT }));
  let width = 0, last = null;

  const text = (name, x, y, words, anchor = "middle") => svg("text", { class: name, x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, words);
  const rect = (name, x, y, w, h) => svg("rect", { class: name, x: x.toFixed(2), y: y.toFixed(2), width: Math.max(0, w).toFixed(2), height: Math.max(0, h).toFixed(2) });
  const line = (name, y) => svg("path", { class: name, d: `M${LEFT} ${y.toFixed(2)}H${width - RIGHT}` });

  // s: scores, groups (blocks by position), turn (reading place of each), phase of each Key (free, now, read), m, old (m before,
  // or null), weights and ghost (exp(score - m) now and before the rescaling, null where a Key is not counted yet), words.
  const paint = (s) => {
    last = s;
    // Not laid out yet; the observer comes back.
    if (width < LEFT + RIGHT + 60) return;
    const gaps = s.groups.length - 1, gap = Math.min(GAP, (width - LEFT - RIGHT) / s.scores.length / 2), w = (width - LEFT - RIGHT - gaps * gap) / s.scores.length;
    const group = s.scores.map((_, j) => s.groups.findIndex((at) => at.includes(j))), x = (j) => LEFT + j * w + group[j] * gap, thick = Math.max(1.5, w * 0.72), big = w >= 25;
    const seen = s.scores.filter(Number.isFinite), low = Math.min(0, ...seen), high = Math.max(0, ...seen), span = high - low || 1;
    const y = (score) => TOP + SCORES - ((score - low) / span) * SCORES, zero = y(0), mid = (j) => x(j) + thick / 2;
    const parts = [], labels = [];
    s.groups.forEach((at, b) => {
      const from = x(at[0]) - 2.5, to = x(at[at.length - 1]) + thick + 2.5, now = s.phase[at[0]] === "now";
      parts.push(svg("rect", { class: `fa-block is-${s.phase[at[0]]}`, x: from.toFixed(2), y: 18, width: (to - from).toFixed(2), height: TOP + SCORES + 17 - 18, rx: 4 }));
      parts.push(text(`fa-turn${now ? " is-now" : ""}`, (from + to) / 2, 12, String(s.turn[b])));
    });
    parts.push(line("fa-axis", zero));
    s.scores.forEach((score, j) => {
      if (!Number.isFinite(score)) { labels.push(text("fa-number", mid(j), zero - 6, w >= 17 ? "−∞" : "×")); return; }
      const top = Math.min(y(score), zero), h = Math.abs(y(score) - zero);
      parts.push(rect(`fa-bar is-${s.phase[j]}`, x(j), top, thick, Math.max(h, 1)));
      if (big) labels.push(text("fa-number", mid(j), score >= 0 ? top - 4 : top + h + 12, s.words.number(score)));
    });
    if (s.old !== null && Number.isFinite(s.old) && s.old !== s.m) parts.push(line("fa-max is-old", y(s.old)));
    if (Number.isFinite(s.m)) parts.push(line("fa-max", y(s.m)), text("fa-mark", width - RIGHT + 5, y(s.m) + 4, "m", "start"));
    parts.push(...labels);
    const base = FOOT + WEIGHTS;
    parts.push(text("fa-title", LEFT - 22, FOOT - 24, s.words.lower, "start"), line("fa-axis", base), line("fa-one", FOOT), text("fa-mark", width - RIGHT + 5, FOOT + 4, "1", "start"));
    s.scores.forEach((_, j) => {
      const weight = s.weights[j], ghost = s.ghost[j];
      if (ghost !== null && ghost > (weight ?? 0)) parts.push(rect("fa-ghost", x(j), base - ghost * WEIGHTS, thick, ghost * WEIGHTS));
      if (weight !== null) parts.push(rect(`fa-weight is-${s.phase[j]}`, x(j), base - weight * WEIGHTS, thick, weight * WEIGHTS));
      if (big || (j + 1) % 4 === 0 || j === 0) parts.push(text("fa-key", mid(j), base + 14, String(j + 1)));
    });
    root.replaceChildren(...parts);
  };
  const size = () => {
    width = host.clientWidth;
    root.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  };
  new ResizeObserver(() => { if (last && host.clientWidth !== width) { size(); paint(last); } }).observe(host);
  return {
    draw: (state) => { if (!width) size(); paint(state); },
    describe: (words) => root.setAttribute("aria-label", words),
  };
};
