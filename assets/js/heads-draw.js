// The drawing of the page "Heads": one layer from its Query heads down to what it keeps, then four layers side by side.
// KV.headsDraw(host, kv) gives draw(setting, words): what is shown moves from the last setting to the new one. All lengths
// are true to scale: the area of what is kept, against the area that MHA with the same Query heads would keep.
KV.headsDraw = (host, kv) => {
  "use strict";
  const { svg } = kv, math = KV.heads;
  const LEFT = 24, RIGHT = 6, TOP = { label: 13, q: 24, k: 74, deeper: 36, c: 150, across: 216, layers: 228 };
  const HEIGHT = { q: 16, k: 18, c: 38, layer: 20, step: 32 }, MOVE_MS = 340, MOST_LAYERS = 4;
  const root = host.appendChild(svg("svg", { class: "hd-plot", role: "img" }));
  let width = 0, shown = null, target = null, words = null, frame = 0;

  // Everything that can move, as numbers. `to[j]` is the place (in slots) of the Key and Value that Query head j reads.
  const state = (s) => {
    const group = s.heads / s.kv_heads, full = Number(math.mhaElements(s));
    const middle = (j) => Math.floor(j / group) * group + (group - 1) / 2;
    return {
      heads: s.heads, layers: Math.min(MOST_LAYERS, s.layers), label: words,
      to: Array.from({ length: s.heads }, (_, j) => (s.latent ? j : middle(j))),
      made: s.latent ? 1 : 0, latent: s.latent / full, rope: (s.latent ? s.rope : 0) / full, plain: s.latent ? 0 : Number(math.elements(s)) / full,
      own: Array.from({ length: MOST_LAYERS }, (_, i) => (i % s.span === 0 ? 1 : 0)),
      owner: Array.from({ length: MOST_LAYERS }, (_, i) => i - (i % s.span)),
    };
  };
  const between = (a, b, share) => {
    const mix = (x, y) => x + (y - x) * share;
    return { ...b, to: b.to.map((y, j) => mix(a.to[j], y)), own: b.own.map((y, i) => mix(a.own[i], y)),
      ...Object.fromEntries(["made", "latent", "rope", "plain"].map((name) => [name, mix(a[name], b[name])])) };
  };

  const box = (x, y, w, h) => `M${x.toFixed(2)} ${y}h${w.toFixed(2)}v${h}h${(-w).toFixed(2)}z`;
  const rect = (name, x, y, w, h, more) => svg("rect", { class: name, x: x.toFixed(2), y, width: Math.max(w, 1.5).toFixed(2), height: h, ...more });
  const letter = (text, x, y, name = "hd-letter") => svg("text", { class: name, x, y, "text-anchor": "middle" }, text);
  // Its letter in a layer's box, where there is room.
  const named = (text, x, w, y) => (w >= 14 ? letter(text, x + w / 2, y + 14.5) : null);
  // Boxes that touch get one outline.
  const outlines = (places, w, reach) => {
    const runs = [];
    for (const x of [...new Set(places.map((place) => Math.round(place * 100) / 100))].sort((a, b) => a - b)) {
      const last = runs[runs.length - 1];
      if (last && x - last[1] < reach) last[1] = x + w;
      else runs.push([x, x + w]);
    }
    return runs;
  };

  // How many times MHA's width the picture must hold: a latent can be larger than what it stands for.
  const most = (now) => Math.max(1, now.plain + now.latent + now.rope);

  const oneLayer = (now) => {
    const slot = (width - LEFT - RIGHT) / most(now) / now.heads, gap = Math.min(8, slot * 0.22), w = slot - gap, kept = 1 - now.made;
    const x = (place) => LEFT + place * slot + gap / 2, mid = (place) => x(place) + w / 2;
    // Where nothing lies below Keys and Values, they use the room.
    const k = TOP.k + TOP.deeper * kept, v = k + HEIGHT.k + 2;
    const places = now.to.map(x), distinct = [...new Set(places.map((place) => place.toFixed(2)))].map(Number);
    const ties = now.to.map((to, j) => `M${mid(j).toFixed(2)} ${TOP.q + HEIGHT.q}L${mid(to).toFixed(2)} ${k.toFixed(2)}`).join("");
    const row = (name, y, h, at) => svg("path", { class: name, d: at.map((place) => box(place, y, w, h)).join("") });
    const big = w >= 16, parts = [
      svg("path", { class: "hd-tie", d: ties, "stroke-opacity": now.heads > 48 ? 0.45 : 0.8 }),
      row("hd-q", TOP.q, HEIGHT.q, now.to.map((_, j) => x(j))),
      svg("g", { "fill-opacity": 1 - 0.82 * now.made, class: "hd-kv" }, row("hd-k", k, HEIGHT.k, distinct), row("hd-v", v, HEIGHT.k, distinct)),
      ...outlines(places, w, 6).map(([from, to]) => rect("hd-kept", from - 3, k - 3, to - from + 6, 2 * HEIGHT.k + 8, { opacity: kept.toFixed(2), rx: 3 })),
      letter("Q", 9, TOP.q + 12.5, "hd-row"), letter("K", 9, k + 13.5, "hd-row"), letter("V", 9, v + 13.5, "hd-row"),
      ...(big ? now.to.map((_, j) => letter("Q", mid(j), TOP.q + 12.5)) : []),
      ...(big && kept > 0.99 ? distinct.flatMap((place) => [letter("K", place + w / 2, k + 13.5), letter("V", place + w / 2, v + 13.5)]) : []),
    ];
    return now.made > 0.01 ? [...parts, ...latent(now, mid, v + HEIGHT.k)] : [...parts, svg("text", { class: "hd-note", x: LEFT, y: v + HEIGHT.k + 21 }, now.label.kept)];
  };
  // The latent, as wide as its share of MHA's K and V at their common height, and the ties through which heads make K and V of it.
  const latent = (now, mid, top) => {
    const wide = width - LEFT - RIGHT, unit = wide / most(now), c = Math.max(now.latent * unit, 2), r = Math.max(now.rope * unit, now.rope ? 1.5 : 0), from = LEFT + Math.max(0, Math.min(wide * 0.3, wide - c - r));
    const ties = now.to.map((_, j) => `M${mid(j).toFixed(2)} ${top.toFixed(2)}L${(from + c / 2).toFixed(2)} ${TOP.c}`).join("");
    const beside = from + c + r + 10, fits = beside + now.label.kept.length * 6.4 < width;
    return [svg("g", { opacity: now.made.toFixed(2) },
      svg("path", { class: "hd-tie is-made", d: ties, "stroke-opacity": now.heads > 48 ? 0.35 : 0.7 }),
      rect("hd-c", from, TOP.c, c, HEIGHT.c), r ? rect("hd-k", from + c + 1, TOP.c, r, HEIGHT.c) : null,
      rect("hd-kept", from - 3, TOP.c - 3, c + r + 7, HEIGHT.c + 6, { rx: 3 }),
      letter("c", 9, TOP.c + 23, "hd-row"),
      svg("text", { class: "hd-note", x: fits ? beside : width - RIGHT, y: TOP.c + 23, "text-anchor": fits ? "start" : "end" }, now.label.kept))];
  };

  const layers = (now) => {
    const left = LEFT + 44, unit = (width - left - RIGHT) / most(now);
    const rows = Array.from({ length: now.layers }, (_, i) => {
      const y = TOP.layers + i * HEIGHT.step, own = now.own[i], h = HEIGHT.layer;
      const c = now.latent * unit, r = now.rope * unit, kv = now.plain * unit, all = c + r + kv;
      const arrow = `M${left + 12} ${y + h / 2 + 3}V${TOP.layers + now.owner[i] * HEIGHT.step + h + 5}m-4 6l4 -6l4 6`;
      return svg("g", {},
        svg("text", { class: "hd-note", x: 0, y: y + 14 }, now.label.layer(i + 1)),
        rect("hd-mha", left, y, unit, h),
        svg("g", { opacity: own.toFixed(2) }, kv > 0.3 ? [rect("hd-k", left, y, kv / 2, h), rect("hd-v", left + kv / 2, y, kv / 2, h)] : null,
          c > 0.3 ? rect("hd-c", left, y, c, h) : null, r > 0.3 ? rect("hd-k", left + c, y, r, h) : null,
          named("K", left, kv / 2, y), named("V", left + kv / 2, kv / 2, y), named("c", left, c, y), named("K", left + c, r, y),
          rect("hd-kept", left - 2, y - 2, all + 4, h + 4, { rx: 3 })),
        own < 0.99 ? svg("g", { opacity: (1 - own).toFixed(2) }, svg("path", { class: "hd-arrow", d: arrow }),
          svg("text", { class: "hd-note", x: left + 24, y: y + 14 }, now.label.reads(now.owner[i] + 1))) : null);
    });
    return [svg("text", { class: "hd-title", x: 0, y: TOP.across }, now.label.across), ...rows];
  };

  const paint = (now) => {
    shown = now;
    root.replaceChildren(svg("text", { class: "hd-title", x: 0, y: TOP.label }, now.label.inside), ...oneLayer(now), ...layers(now));
  };
  const move = (from, start) => {
    frame = requestAnimationFrame((time) => {
      if (!root.isConnected) return;
      const share = Math.min(1, (time - start) / MOVE_MS), eased = 1 - (1 - share) ** 3;
      paint(between(from, target, eased));
      if (share < 1) move(from, start);
    });
  };
  const size = () => {
    width = host.clientWidth;
    const height = TOP.layers + MOST_LAYERS * HEIGHT.step - 6;
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("height", height);
  };

  new ResizeObserver(() => { if (target && host.clientWidth !== width) { size(); cancelAnimationFrame(frame); paint(target); } }).observe(host);
  return {
    draw: (setting, label) => {
      words = label;
      if (!width) size();
      target = state(setting);
      cancelAnimationFrame(frame);
      if (!shown || shown.heads !== target.heads || kv.calm()) paint(target);
      else move({ ...shown }, performance.now());
    },
    describe: (text) => root.setAttribute("aria-label", text),
  };
};
