// Block size: empty ends of last blocks against entries of block tables, both in bytes, and the place of one token.
KV.widgets["paged-attention-size"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["math", "badge"].map((part) => KV.load(`paged-attention-${part}`)));
  const { el, svg } = kv, math = KV.pagedAttention, SIZES = Array.from({ length: 10 }, (_, i) => 2 ** i), MOST = 64, LONGEST = 1000000;
  const MARGIN = { left: 64, right: 14, top: 16, bottom: 40 }, HEIGHT = 250;
  const panel = el("div", { class: "pa-panel" }), stage = el("div"), plot = svg("svg", { class: "pa-plot", role: "img", height: HEIGHT }), answer = el("p", { class: "kv-note" }), readout = el("dl", { class: "pa-readout" });
  const wrong = el("p", { class: "pa-say", role: "alert" }), formula = el("p", { class: "pa-formula kv-num" });
  const badge = KV.pagedAttentionBadge(kv, props.computed);
  const madeUp = el("span", {}, " ", KV.pagedAttentionBadge(kv, props.toy), " ", el("span", { class: "kv-note" }, kv.t("made-up")));
  const cells = Object.fromEntries(["tokens", "blocks", "unfilled", "each", "share", "waste", "table"].map((name) => {
    const output = el("output", { class: "kv-num", "data-out": name });
    readout.append(el("div", {}, el("dt", {}, kv.t(`out-${name}`)), el("dd", {}, output)));
    return [name, output];
  }));
  stage.append(plot, answer, el("p", { class: "kv-note" }, kv.t("line-mean")));
  root.append(el("div", { class: "kv-card pa-sizes" }, stage, panel, el("div", {}, readout, el("p", {}, badge, madeUp))));
  const controls = kv.controls(panel, [
    { name: "mix", kind: "select", label: kv.t("mix"), value: "chat", choices: [...Object.keys(props.mixes), "own"].map((name) => [name, kv.t(`mix-${name}`)]) },
    { name: "lengths", kind: "text", label: kv.t("own"), value: "34, 24, 200", maxLength: 500 },
    { name: "block", kind: "range", label: kv.t("block-size"), unit: kv.t("unit"), min: 1, max: 512, value: 16, scale: "log2" },
    { name: "model", kind: "select", label: kv.t("token-bytes"), value: props.models[0].name, choices: props.models.map((m) => [m.name, kv.t("token-choice", { size: KV.bytes(m.bytes), model: m.title })]) },
    { name: "token", kind: "number", label: kv.t("token"), min: 0, max: LONGEST, value: 33 },
  ], () => draw());
  panel.append(wrong, formula);

  const own = () => {
    const found = controls.values.lengths.split(/[,，\s]+/).filter((part) => part !== "").map(Number);
    return found.length >= 1 && found.length <= MOST && found.every((n) => Number.isInteger(n) && n >= 1 && n <= LONGEST) ? found : null;
  };
  let lengths = props.mixes.chat, width = 0;
  const tick = (n) => KV.bytes(n).replace(/\.00 /, " ");
  const paint = (token) => {
    width = Math.max(260, stage.clientWidth);
    plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const found = SIZES.map((size) => ({ size, ...math.paging(lengths, size) })), bottom = HEIGHT - MARGIN.bottom;
    const series = { waste: found.map((f) => f.unfilled * token), table: found.map((f) => f.tableBytes), mean: found.map((f) => math.expected(f.size) * lengths.length * token) };
    const values = Object.values(series).flat().filter((n) => n > 0), low = Math.floor(Math.log2(Math.min(...values)) / 5) * 5, high = Math.max(low + 5, Math.ceil(Math.log2(Math.max(...values)) / 5) * 5);
    const x = (size) => MARGIN.left + (Math.log2(size) / Math.log2(SIZES.at(-1))) * (width - MARGIN.left - MARGIN.right), y = (n) => bottom - ((Math.log2(n) - low) / (high - low)) * (bottom - MARGIN.top);
    const line = (name) => {
      const points = found.map((f, i) => [x(f.size), series[name][i]]).filter(([, n]) => n > 0).map(([px, n]) => `${px.toFixed(1)},${y(n).toFixed(1)}`);
      return svg("polyline", { class: `pa-line is-${name}`, points: points.join(" ") });
    };
    const now = math.paging(lengths, controls.values.block), here = x(controls.values.block);
    const dot = (name, n) => (n > 0 ? svg("circle", { class: `is-${name}`, cx: here, cy: y(n), r: 5.5 }) : null);
    // Names stand where the lines are far from one another: right for what rises, left for what falls.
    const label = (name, i, dy, anchor) => svg("text", { x: x(SIZES[i]) + (anchor === "end" ? -4 : 6), y: y(series[name][i]) + dy, "text-anchor": anchor }, kv.t(`line-${name}`));
    // No empty slot anywhere: nothing to draw, and nothing to name.
    const wasteAt = [8, 9, 7, 6, 5, 4, 3, 2, 1].find((i) => series.waste[i] > 0);
    plot.replaceChildren(
      ...Array.from({ length: (high - low) / 5 + 1 }, (_, i) => low + 5 * i).map((e) => svg("g", {}, svg("line", { class: "pa-grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(2 ** e), y2: y(2 ** e) }), svg("text", { x: MARGIN.left - 6, y: y(2 ** e) + 4, "text-anchor": "end" }, tick(2 ** e)))),
      ...SIZES.filter((_, i) => width > 420 || i % 3 === 0).map((size) => svg("text", { x: x(size), y: bottom + 17, "text-anchor": "middle" }, String(size))),
      svg("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: bottom + 35, "text-anchor": "middle" }, kv.t("axis-size")),
      svg("line", { class: "pa-now", x1: here, x2: here, y1: MARGIN.top, y2: bottom }), line("mean"), line("waste"), line("table"),
      ...[dot("waste", now.unfilled * token), dot("table", now.tableBytes), wasteAt && label("waste", wasteAt, -8, "end"), label("table", 1, -8, "start")].filter(Boolean));
  };
  let speak = 0;
  const draw = () => {
    const v = controls.values, mine = own(), token = props.models.find((m) => m.name === v.model).bytes;
    wrong.textContent = v.mix === "own" && !mine ? kv.t("own-wrong") : "";
    controls.input("lengths").closest(".kv-control").hidden = v.mix !== "own";
    lengths = v.mix === "own" ? mine ?? lengths : props.mixes[v.mix];
    const found = math.paging(lengths, v.block), each = found.unfilled / lengths.length, [block, offset] = math.place(v.token, v.block);
    const shown = { tokens: found.tokens, blocks: found.entries, unfilled: found.unfilled };
    for (const [name, n] of Object.entries(shown)) cells[name].textContent = KV.number(n);
    cells.each.textContent = kv.t("each", { each: KV.number(each, 2), expected: KV.number(math.expected(v.block), 1) });
    cells.share.textContent = `${((100 * found.unfilled) / found.slots).toFixed(2)} %`;
    cells.waste.textContent = KV.bytes(found.unfilled * token);
    cells.table.textContent = KV.bytes(found.tableBytes);
    formula.textContent = kv.t("address", { token: KV.number(v.token), size: v.block, block: KV.number(block), offset });
    madeUp.hidden = v.mix === "own";
    paint(token);
    answer.textContent = kv.t("size-say", { size: v.block, waste: KV.bytes(found.unfilled * token), table: KV.bytes(found.tableBytes) });
    clearTimeout(speak);
    speak = setTimeout(() => plot.setAttribute("aria-label", kv.t("size-figure", { text: answer.textContent })), 400);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  plot.setAttribute("aria-label", kv.t("size-figure", { text: "" }));
  new ResizeObserver(() => { if (stage.clientWidth !== width && stage.clientWidth > 260) draw(); }).observe(stage);
  draw();
};
