// The drawing of the online softmax: scores as bars, in their blocks; below them exp(score - m) for what has been read; below
// those the Values. KV.flashDraw(host, kv) gives draw(state): the lower bars add up to l, and shrink together when m rises.
KV.flashDraw = (host, kv) => {
  "use strict";
  const { svg } = kv, LEFT = 26, RIGHT = 30, TOP = 34, SCORES = 104, FOOT = 206, WEIGHTS = 74, BASE = FOOT + WEIGHTS, GAP = 12;
  const root = host.appendChild(svg("svg", { class: "fa-plot", role: "img", height: BASE + 84 }));
  let width = 0, last = null;

  const text = (name, x, y, words, anchor = "middle") => svg("text", { class: name, x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, words);
  const rect = (name, x, y, w, h) => svg("rect", { class: name, x: x.toFixed(2), y: y.toFixed(2), width: Math.max(0, w).toFixed(2), height: Math.max(0, h).toFixed(2) });
  const line = (name, y) => svg("path", { class: name, d: `M${LEFT} ${y.toFixed(2)}H${width - RIGHT}` });
  const mark = (y, words) => text("fa-mark", width - RIGHT + 5, y + 4, words, "start");

  // The solid line is the maximum that the lower bars are measured against; a dashed one the next, or the one before.
  const maxima = (s, y) => {
    const solid = Number.isFinite(s.m), found = s.next ?? s.old, other = found !== null && Number.isFinite(found) && found !== s.m;
    const lines = [...(other ? [line("fa-max is-other", y(found))] : []), ...(solid ? [line("fa-max", y(s.m))] : [])];
    if (!other) return solid ? [...lines, mark(y(s.m), "m")] : lines;
    const above = Math.max(found, s.m), below = Math.min(found, s.m);
    if (!Number.isFinite(below)) return [...lines, mark(y(above), "m′")];
    const near = Math.max(0, 14 - (y(below) - y(above))) / 2;
    return [...lines, mark(y(above) - near, "m′"), mark(y(below) + near, "m")];
  };
  // Two rows of numbers where they fit below their Keys, else turned. Gives the parts and where they end.
  const values = (s, mid, pitch) => {
    const words = s.values.map((value) => value.map(s.words.number)), top = BASE + 46, longest = Math.max(...words.flat().map((word) => word.length));
    const parts = [text("fa-title", LEFT - 22, BASE + 39, s.words.values, "start"), rect("fa-values", LEFT, top, width - LEFT - RIGHT, 2.5)];
    if (longest * 6.7 <= pitch) {
      const rows = [0, 1].flatMap((d) => [text("fa-mark", LEFT - 22, top + 17 + 16 * d, d ? "v₂" : "v₁", "start"), ...words.map((value, j) => text("fa-number fa-value", mid(j), top + 17 + 16 * d, value[d]))]);
      return { parts: [...parts, ...rows], end: top + 38 };
    }
    // Where even that is too narrow, every second or third; the field beside the figure has them all.
    const every = Math.ceil(12.5 / pitch), turned = words.flatMap((value, j) => (j % every ? [] : svg("text", { class: "fa-number fa-value", "text-anchor": "end", transform: `translate(${(mid(j) + 4).toFixed(1)} ${top + 8}) rotate(-90)` }, `(${value.join(", ")})`)));
    return { parts: [...parts, text("fa-mark", LEFT - 16, top + 18, "v", "start"), ...turned], end: top + 14 + 6.4 * Math.max(...words.map((value) => value.join(", ").length + 2)) };
  };

  // s: scores, values, groups (blocks by position), turn (reading place of each), phase of each Key (free, now, read), m (what
  // the weights are against), next and old (another m to show, or null), weights and ghost (exp(score - m) now and before the
  // rescaling, null where a Key is not counted yet), words.
  const paint = (s) => {
    last = s;
    // Not laid out yet; the observer comes back.
    if (width < LEFT + RIGHT + 60) return;
    const gaps = s.groups.length - 1, gap = Math.min(GAP, (width - LEFT - RIGHT) / s.scores.length / 2), w = (width - LEFT - RIGHT - gaps * gap) / s.scores.length;
    const group = s.scores.map((_, j) => s.groups.findIndex((at) => at.includes(j))), x = (j) => LEFT + j * w + group[j] * gap, thick = Math.max(1.5, w * 0.72), big = w >= 25;
    const seen = s.scores.filter(Number.isFinite), low = Math.min(0, ...seen), high = Math.max(0, ...seen), span = high - low || 1;
    const y = (score) => TOP + SCORES - ((score - low) / span) * SCORES, zero = y(0), mid = (j) => x(j) + thick / 2;
    const parts = [], labels = [], crowded = s.groups[0].length * w + gap < 8 * String(s.groups.length).length + 3, active = s.groups.findIndex((at) => s.phase[at[0]] === "now");
    s.groups.forEach((at, b) => {
      const from = x(at[0]) - 2.5, to = x(at[at.length - 1]) + thick + 2.5, now = b === active;
      parts.push(svg("rect", { class: `fa-block is-${s.phase[at[0]]}`, x: from.toFixed(2), y: 18, width: (to - from).toFixed(2), height: TOP + SCORES + 17 - 18, rx: 4 }));
      if (now || !crowded || ((b === 0 || (b + 1) % 4 === 0) && (active < 0 || Math.abs(b - active) > 1))) parts.push(text(`fa-turn${now ? " is-now" : ""}`, (from + to) / 2, 12, String(s.turn[b])));
    });
    parts.push(line("fa-axis", zero));
    s.scores.forEach((score, j) => {
      if (!Number.isFinite(score)) { labels.push(text("fa-number", mid(j), zero - 6, w >= 17 ? "−∞" : "×")); return; }
      const top = Math.min(y(score), zero), h = Math.abs(y(score) - zero);
      parts.push(rect(`fa-bar is-${s.phase[j]}`, x(j), top, thick, Math.max(h, 1)));
      if (big) labels.push(text("fa-number", mid(j), score >= 0 ? top - 4 : top + h + 12, s.words.number(score)));
    });
    parts.push(...maxima(s, y), ...labels);
    parts.push(text("fa-title", LEFT - 22, FOOT - 24, s.words.lower, "start"), line("fa-axis", BASE), line("fa-one", FOOT), text("fa-number", width - RIGHT + 5, FOOT + 4, "1", "start"));
    s.scores.forEach((_, j) => {
      const weight = s.weights[j], ghost = s.ghost[j];
      if (ghost !== null && ghost > (weight ?? 0)) parts.push(rect("fa-ghost", x(j), BASE - ghost * WEIGHTS, thick, ghost * WEIGHTS));
      if (weight !== null) parts.push(rect(`fa-weight is-${s.phase[j]}`, x(j), BASE - weight * WEIGHTS, thick, weight * WEIGHTS));
      if (big || (j + 1) % 4 === 0 || j === 0) parts.push(text("fa-key", mid(j), BASE + 14, String(j + 1)));
    });
    const below = values(s, mid, w);
    root.setAttribute("viewBox", `0 0 ${width} ${Math.ceil(below.end)}`);
    root.setAttribute("height", Math.ceil(below.end));
    root.replaceChildren(...parts, ...below.parts);
  };
  new ResizeObserver(() => { if (last && host.clientWidth !== width) { width = host.clientWidth; paint(last); } }).observe(host);
  return {
    draw: (state) => { width ||= host.clientWidth; paint(state); },
    describe: (words) => root.setAttribute("aria-label", words),
  };
};
