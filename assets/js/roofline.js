// Roofline: five operations of one layer, how much arithmetic each does for a byte, and what that allows a device.
KV.widgets.roofline = async (root, props, kv) => {
  "use strict";
  await Promise.all(["roofline-math", "roofline-plot"].map(kv.load));
  const { el } = kv, math = KV.roofline, devices = props.devices;
  const range = (name, per) => ({ name, kind: "range", scale: "log2", perOctave: per, label: kv.t(name), min: props.limits[name][0], max: props.limits[name][1], value: props.start[name] });
  const menu = (name, choices) => ({ name, kind: "select", label: kv.t(name), value: props.start[name], choices });
  const counts = props.heads.map((n) => [n, String(n)]);
  const declaration = [
    menu("device", devices.map((device) => [device.name, device.title])), range("batch", 1), range("tokens", 1), range("width", 2),
    menu("heads", counts), menu("kv_heads", counts), menu("head_dim", props.head_dims.map((n) => [n, String(n)])),
    menu("stored", [[2, kv.t("stored-2")], [1, kv.t("stored-1")]]),
  ];
  const figure = el("div", { class: "rf-figure" }), panel = el("div", { class: "rf-panel" }), answer = el("p", { class: "rf-answer" });
  const live = el("p", { class: "kv-sr", role: "status" }), tables = el("div", { class: "rf-tables" });
  root.append(el("div", { class: "kv-card rf-top" }, el("div", { class: "rf-stage" }, figure,
    el("p", { class: "kv-note rf-legend", "aria-hidden": "true" }, ["weights", "attention", "ridge", "other"].map((name) => el("span", {}, el("i", { class: `rf-key is-${name}` }), kv.t(`legend-${name}`)))),
    answer, live), panel, tables));
  const controls = kv.controls(panel, declaration, (values, name) => {
    // KV heads are at most as many as Query heads; both are powers of two, so they divide.
    if (values.kv_heads > values.heads) controls.set(name === "heads" ? { kv_heads: values.heads } : { heads: values.kv_heads });
    schedule();
  });
  if (controls.values.kv_heads > controls.values.heads) controls.set({ kv_heads: controls.values.heads });
  const plot = KV.rooflinePlot(figure, kv);

  const OPS = [["1", "prefill", "weights"], ["2", "project", "weights"], ["3", "mha", "attention"], ["4", "gqa", "attention"], ["5", "mla", "attention"]];
  const works = (s) => ({
    prefill: math.gemm(s.batch * s.tokens, s.width, s.width, s.stored), project: math.gemm(s.batch, s.width, s.width, s.stored),
    mha: math.grouped(s.heads, s.heads, s.head_dim, s.tokens, s.batch, s.stored), gqa: math.grouped(s.heads, s.kv_heads, s.head_dim, s.tokens, s.batch, s.stored),
    mla: math.latent(s.heads, props.latent, props.position, s.tokens, s.batch, s.stored),
  });
  const title = (name, s) => kv.t(`op-${name}`, { group: s.heads / s.kv_heads, heads: s.heads });

  const table = (caption, head, name) => {
    const body = el("tbody"), words = kv.t(caption);
    tables.append(el("p", { class: "kv-note" }, words, " ", el("span", { class: "kv-badge kv-computed" }, el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badge.mark), props.badge.word)),
      el("div", { class: "kv-table-wrap", tabindex: "0", role: "region", "aria-label": words }, el("table", { class: "kv-table rf-table", "data-table": name }, el("thead", {}, el("tr", {})), body)));
    return (rows, values) => {
      tables.querySelector(`[data-table=${name}] thead tr`).replaceChildren(...head.map((key) => el("th", { scope: "col" }, kv.t(key, values))));
      body.replaceChildren(...rows.map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, first), cells.map((cell) => el("td", {}, cell)))));
    };
  };
  const showWork = table("work-caption", ["col-op", "col-flops", "col-bytes", "col-intensity", "col-bound", "col-time", "col-reach"], "work");
  const showSame = table("same-caption", ["col-op", "col-short", "col-long", "col-one", "col-many"], "same");

  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now(), s = controls.values, device = devices.find((item) => item.name === s.device), now = works(s), ridge = math.ridge(device);
    const x = Object.fromEntries(Object.entries(now).map(([name, work]) => [name, math.intensity(work)]));
    plot.draw({ device, devices, points: OPS.map(([mark, name, kind]) => ({ mark, kind, x: x[name] })) });
    showWork(OPS.map(([mark, name]) => {
      const work = now[name], share = math.reachable(x[name], device) / device.flops;
      return [`${mark} ${title(name, s)}`, math.flops(Number(work.flops), "FLOP"), KV.decimalBytes(Number(work.bytes)), math.digits(x[name]),
        kv.t(x[name] >= ridge ? "bound-compute" : "bound-memory"), math.seconds(math.bound(work, device)), `${math.digits(100 * share)} %`];
    }));
    const changed = [{ tokens: props.short }, { tokens: props.long }, { batch: 1 }, { batch: props.many }].map((change) => works({ ...s, ...change }));
    showSame(OPS.map(([mark, name]) => [`${mark} ${title(name, s)}`, ...changed.map((work) => math.digits(math.intensity(work[name])))]), { batch: kv.number(s.batch), tokens: kv.number(s.tokens), many: props.many });
    const values = { gqa: math.digits(x.gqa), ridge: math.digits(ridge), gpu: device.title, times: KV.number(Number((ridge / x.gqa).toPrecision(2))), prefill: math.digits(x.prefill), group: s.heads / s.kv_heads };
    const words = [kv.t("answer-ridge", values), kv.t(x.gqa >= ridge ? "answer-over" : "answer-under", values), kv.t(x.prefill >= ridge ? "prefill-over" : "prefill-under", values)].join(kv.t("join"));
    answer.textContent = words;
    clearTimeout(speak);
    speak = setTimeout(() => { live.textContent = words; plot.describe(kv.t("figure", { words })); }, 500);
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  let speak = 0, frame = 0;
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  plot.describe(kv.t("figure", { words: "" }));
  draw();
};
