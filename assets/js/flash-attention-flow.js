// Data-flow of one head: what crosses between memory (left) and chip (right), step by step, each with its bytes.
// KV.flashFlow(host, kv) gives draw({ naive, flash, words }); both lists hold {name, bytes, write}. Bars are true to scale.
KV.flashFlow = (host, kv) => {
  "use strict";
  const { svg } = kv, STEP = 34, TOP = 44, GAP = 34, TENSORS = { Q: "fa-q", K: "fa-k", V: "fa-v", S: "fa-s", P: "fa-s", O: "fa-o", LSE: "fa-o" };
  const root = host.appendChild(svg("svg", { class: "fa-flow", role: "img" }));
  let width = 0, last = null;
  const text = (name, x, y, words, anchor = "middle") => svg("text", { class: name, x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, words);
  const chip = (x, y, tensors) => tensors.map((name, i) => svg("g", {}, svg("rect", { class: TENSORS[name], x: (x + i * 23).toFixed(1), y: y - 9, width: name.length > 1 ? 34 : 20, height: 18, rx: 3 }),
    text("fa-letter", x + i * 23 + (name.length > 1 ? 17 : 10), y + 4, name)));
  // An arrow over the middle, towards the chip or back to memory, with a bar below it: its share of the largest of all moves.
  const arrow = (from, to, y, write, words, share) => {
    const [a, b] = write ? [to, from] : [from, to], tip = write ? 7 : -7;
    return [svg("path", { class: `fa-arrow${write ? " is-write" : ""}`, d: `M${a} ${y}H${b}m${tip} -4l${-tip} 4l${tip} 4` }), text("fa-note", (from + to) / 2, y - 7, words),
      svg("rect", { class: `fa-share${write ? " is-write" : ""}`, "data-share": share, x: from, y: y + 4, width: Math.max(0.75, share * (to - from)).toFixed(2), height: 5 })];
  };
  const panel = (top, title, moves, inside, words, total) => {
    const side = Math.min(118, width * 0.27), from = side + 8, to = width - side - 8, high = moves.length * STEP + 12;
    const box = (name, x) => svg("rect", { class: name, x, y: top + 14, width: side, height: high + 12, rx: 6 });
    return [text("fa-title", 0, top - 4, title, "start"), box("fa-memory", 0.5), box("fa-chip", width - side - 1),
      text("fa-place", side / 2, top + 30, side < 100 ? words.memoryShort : words.memory), text("fa-place", width - side / 2, top + 30, words.chip),
      ...moves.flatMap((move, i) => {
        const y = top + TOP + i * STEP + 8, size = move.tensors.reduce((sum, name) => sum + (name.length > 1 ? 36 : 23), -3);
        return [...chip(Math.max(4, (side - size) / 2), y, move.tensors), ...arrow(from, to, y, move.write, move.words, move.bytes / total), text("fa-inside", width - side / 2, y + 4, inside[i] || "")];
      })];
  };
  const paint = (s) => {
    last = s;
    // Not laid out yet; the observer comes back.
    if (width < 200) return;
    const second = TOP + s.naive.length * STEP + GAP + 8, height = second + TOP + s.flash.length * STEP + 12;
    const most = Math.max(...[...s.naive, ...s.flash].map((move) => move.bytes));
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("height", height);
    root.replaceChildren(...panel(18, s.words.naive, s.naive, s.words.insideNaive, s.words, most), ...panel(second + 8, s.words.flash, s.flash, s.words.insideFlash, s.words, most));
  };
  new ResizeObserver(() => { if (last && host.clientWidth !== width) { width = host.clientWidth; paint(last); } }).observe(host);
  return {
    draw: (state) => { width ||= host.clientWidth; paint(state); },
    describe: (words) => root.setAttribute("aria-label", words),
  };
};
