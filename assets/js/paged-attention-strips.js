// The same memory twice, slot by slot: in blocks, and in one reserved piece for each request; in `below` where all slots went.
KV.pagedAttentionStrips = (host, below, kv, props, words) => {
  "use strict";
  const { el, svg } = kv, size = props.blockSize, total = props.numBlocks * size, HEIGHT = 34;
  const parts = ["used", "later", "never", "hole", "free"];
  const pattern = (name, d) => svg("pattern", { id: `pa-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("rect", { class: "pa-bound", width: 6, height: 6 }), svg("path", { class: "pa-hatch", d }));
  const roots = {}, waits = {};
  for (const name of ["paged", "reserved"]) {
    roots[name] = svg("svg", { class: "pa-strip", role: "img", height: HEIGHT, "aria-label": kv.t(`strip-${name}`) });
    waits[name] = el("p", { class: "pa-waits" });
    host.append(el("div", { class: "pa-strip-top" }, el("h3", {}, kv.t(`strip-${name}`)), waits[name]), roots[name]);
  }
  roots.paged.append(svg("defs", {}, pattern("later", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"), pattern("never", "M0 0L6 6M6 0L0 6")));
  host.append(el("ul", { class: "pa-legend", "aria-hidden": "true" }, parts.map((part) => el("li", {}, svg("svg", { class: "pa-key", width: 22, height: 14 }, svg("rect", { class: `pa-part is-${part}`, x: 1, y: 1, width: 20, height: 12 })), kv.t(`legend-${part}`))), el("li", {}, kv.t("legend-shared"))));
  let shown = null, width = 0;

  // Pieces as [kind, first slot, slots, label], from what the server said.
  const paged = (state) => {
    const owner = new Map();
    for (const [seq, table] of Object.entries(state.paged.tables)) {
      table.forEach((id, i) => { if (!owner.has(id)) owner.set(id, [seq, i, Math.min(size, state.paged.tokens[seq] - i * size)]); });
    }
    return Array.from({ length: props.numBlocks }, (_, id) => {
      if (!owner.has(id)) return [["free", id * size, size, ""]];
      const [seq, i, filled] = owner.get(id), later = Math.min(size, state.requests[seq][1] - i * size) - filled;
      const label = state.paged.refs[id] > 1 ? `${words.name(Number(seq))}+` : words.name(Number(seq));
      return [["used", id * size, filled, label], ["later", id * size + filled, Math.max(0, later), ""], ["never", id * size + filled + Math.max(0, later), size - filled - Math.max(0, later), ""]];
    }).flat();
  };
  const reserved = (state, limit) => [
    ...Object.entries(state.reserved.rows).flatMap(([seq, [first, length]]) => {
      const have = state.reserved.tokens[seq], final = state.requests[seq][1];
      return [["used", first, have, words.name(Number(seq))], ["later", first + have, final - have, ""], ["never", first + final, length - final, ""]];
    }),
    ...state.reserved.holes.map(([first, length]) => [length < limit ? "hole" : "free", first, length, ""]),
  ];
  const paint = (root, pieces) => {
    const at = (slot) => (slot / total) * (width - 2) + 1;
    root.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const shapes = pieces.filter((piece) => piece[2] > 0).flatMap(([kind, first, slots, label]) => {
      const x = at(first), w = at(first + slots) - x;
      return [svg("rect", { class: `pa-part is-${kind}`, x: x.toFixed(2), y: 1, width: w.toFixed(2), height: HEIGHT - 2, "data-slots": slots }),
        label && w > 6 + 8 * label.length ? svg("text", { class: "pa-strip-name", x: (x + w / 2).toFixed(2), y: HEIGHT / 2 + 4.5, "text-anchor": "middle" }, label) : null];
    });
    const lines = root === roots.paged ? Array.from({ length: props.numBlocks - 1 }, (_, i) => svg("line", { class: "pa-cut", x1: at((i + 1) * size), x2: at((i + 1) * size), y1: 0, y2: HEIGHT })) : [];
    root.replaceChildren(...root.querySelectorAll("defs"), ...shapes.filter(Boolean), ...lines);
  };

  const ROWS = ["running", "waiting", "tokens", "used", "bound", "hole", "free", "sum", "share", "generated", "ended"];
  const outs = { paged: {}, reserved: {} }, holes = el("th", { scope: "row" });
  const body = el("tbody", {}, ROWS.map((row) => el("tr", { class: row === "sum" ? "is-sum" : null }, row === "hole" ? holes : el("th", { scope: "row" }, kv.t(`row-${row}`)),
    ["paged", "reserved"].map((name) => { outs[name][row] = el("output", { "data-out": `${name}-${row}` }); return el("td", { class: "kv-num" }, outs[name][row]); }))));
  const caption = el("caption", {}, kv.t("counts-caption", { total }), " ", KV.pagedAttentionBadge(kv, props.computed), " ", KV.pagedAttentionBadge(kv, props.toy));
  below.append(el("table", { class: "kv-table pa-counts" }, caption,
    el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, kv.t("column-paged")), el("th", { scope: "col" }, kv.t("column-reserved")))), body));

  const sumOf = (tokens) => Object.values(tokens).reduce((sum, n) => sum + n, 0);
  const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "–");
  const count = (state, limit) => {
    const { paged: p, reserved: r } = state, used = p.used * size - p.unfilled, [kept, later, never, hole, free] = r.waste[limit];
    const line = (numbers) => `${numbers.join(" + ")} = ${numbers.reduce((a, b) => a + b, 0)}`;
    const sumKind = (kind) => paged(state).reduce((sum, piece) => sum + (piece[0] === kind ? piece[2] : 0), 0);
    const bound = (later, never) => kv.t("bound-sum", { later, never, sum: later + never });
    const common = (s) => ({ running: Object.keys(s.tokens).length, waiting: s.waiting.length, tokens: sumOf(s.tokens), generated: s.generated, ended: s.ended });
    return {
      paged: { ...common(p), used, bound: bound(sumKind("later"), sumKind("never")), hole: 0, free: p.free * size, sum: line([used, p.unfilled, 0, p.free * size]), share: share(used, used + p.unfilled) },
      reserved: { ...common(r), used: kept, bound: bound(later, never), hole, free, sum: line([kept, later + never, hole, free]), share: share(kept, kept + later + never) },
    };
  };
  const names = (items) => words.list(items.map(([seq]) => words.name(seq)));
  const draw = () => {
    if (!shown) return;
    const { state, limit } = shown, found = count(state, limit);
    width = Math.max(200, host.clientWidth);
    paint(roots.paged, paged(state));
    paint(roots.reserved, reserved(state, limit));
    for (const name of ["paged", "reserved"]) {
      for (const row of ROWS) outs[name][row].textContent = String(found[name][row]);
      waits[name].textContent = state[name].waiting.length ? kv.t(`waits-${name}`, { names: names(state[name].waiting) }) : "";
      roots[name].setAttribute("aria-label", kv.t(`alt-${name}`, { used: found[name].used, bound: found[name].bound, hole: found[name].hole, free: found[name].free, total }));
    }
    holes.textContent = kv.t("row-hole", { limit });
  };
  new ResizeObserver(() => { if (host.clientWidth !== width) draw(); }).observe(host);
  // `limit`: slots that the next request in line would need in one piece.
  return (state, limit) => { shown = { state, limit }; draw(); };
};
