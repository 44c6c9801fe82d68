// Cache size: a model, five numbers and a GPU decide what is drawn. All of it is worked out here; nothing asks the server.
KV.widgets["cache-size"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["cache-size-math", "cache-size-plot", "cache-size-view"].map(kv.load));
  const { el } = kv, size = KV.cacheSize;
  const byName = (list) => Object.fromEntries(list.map((item) => [item.name, item]));
  const models = byName(props.models), devices = byName(props.devices), dtypes = byName(props.dtypes);
  const view = KV.cacheSizeView(kv, props.badges);

  const SHAPE = ["layers", "kv_heads", "head_dim"];
  const own = (name) => models[controls.values.model][name];
  const ranged = (name, value, perOctave, more) => ({
    name, kind: "range", scale: "log2", perOctave, label: kv.t(name), value, min: props.limits[name][0], max: props.limits[name][1], ...more,
  });
  // The shape goes with the model, so the address holds it only where it departs from the model's.
  const shape = (name, perOctave) => ranged(name, models[props.start.model][name], perOctave, { key: false });
  const menu = (name, value, choices) => ({ name, kind: "select", label: kv.t(name), value, choices });
  const declaration = [
    menu("model", props.start.model, props.models.map((item) => [item.name, item.title])),
    menu("gpu", props.start.gpu, [...props.devices.map((item) => [item.name, item.title]), ["none", kv.t("gpu-none")]]),
    ranged("tokens", props.start.tokens, 4, { format: size.tokens }),
    ranged("batch", 1, 1),
    menu("dtype", "bf16", props.dtypes.map((item) => [item.name, kv.t("dtype-choice", { name: item.name, bytes: item.bytes })])),
    menu("weights", "16", ["16", "8", "4"].map((bits) => [bits, kv.t(`weights-${bits}`)])),
    shape("layers", 8), shape("kv_heads", 1), shape("head_dim", 2),
    menu("scale", "log", ["log", "linear"].map((name) => [name, kv.t(`scale-${name}`)])),
  ];

  const figure = el("div", { class: "cs-figure" }), panel = el("div", { class: "cs-panel" });
  const readout = el("div", { class: "cs-readout" }), answer = el("p", { class: "cs-answer" }), caveats = el("p", { class: "kv-note" });
  const live = el("p", { class: "kv-sr", role: "status" }), message = el("p", { class: "cs-message", role: "status" });
  const reset = el("button", { class: "kv-button is-ghost", type: "button", onclick: () => adopt() }, kv.t("reset"));
  root.append(el("div", { class: "kv-card cs-top" }, el("div", { class: "cs-stage" }, figure,
    el("p", { class: "kv-note cs-legend", "aria-hidden": "true" }, ["here", "crossing", "fits"].map((kind) => el("span", {}, kv.t(`legend-${kind}`)))), answer, caveats, live), panel, readout));
  const controls = kv.controls(panel, declaration, (values, name) => (name === "model" ? adopt() : changed()));
  panel.append(message, reset);
  const plot = KV.cacheSizePlot(figure, kv, (tokens) => { controls.set({ tokens }); changed(); });
  const details = root.appendChild(el("div", { class: "cs-details" }));
  const showFormula = view.formula(details, controls), showOutputs = view.outputs(readout);
  const sources = details.appendChild(el("p", { class: "kv-note" }));

  const adopt = () => { controls.set(Object.fromEntries(SHAPE.map((name) => [name, own(name)]))); changed(); };
  const changed = () => {
    message.textContent = "";
    KV.state.set(Object.fromEntries(SHAPE.map((name) => [name, controls.values[name] === own(name) ? null : controls.values[name]])));
    schedule();
  };
  for (const from of [own, (name) => KV.state.get(name)]) controls.set(Object.fromEntries(SHAPE.map((name) => [name, from(name)])));

  // A number box left with something that it cannot take: the nearest value is taken, and that is said.
  panel.addEventListener("change", (event) => {
    const box = event.target;
    if (box.type !== "number") return;
    const spec = declaration.find((item) => `${controls.input(item.name).id}-exact` === box.id);
    const raw = box.value.trim() === "" ? NaN : Number(box.value);
    if (Number.isInteger(raw) && raw >= spec.min && raw <= spec.max) return;
    const kept = Number.isFinite(raw) ? Math.min(spec.max, Math.max(spec.min, Math.round(raw))) : controls.values[spec.name];
    controls.set({ [spec.name]: kept });
    changed();
    message.textContent = kv.t("out-of-range", { label: spec.label, low: size.count(spec.min), high: size.count(spec.max), kept: size.count(kept) });
  });

  const compute = () => {
    const { values } = controls, model = models[values.model], device = devices[values.gpu] || null, dtype = dtypes[values.dtype];
    const settings = { layers: values.layers, kv_heads: values.kv_heads, head_dim: values.head_dim, tokens: values.tokens, batch: values.batch, element_bytes: dtype.bytes };
    const weights = size.weightBytes(model.weight_params, Number(values.weights)), memory = device ? BigInt(device.memory_bytes) : 0n;
    const edited = SHAPE.some((name) => values[name] !== model[name]), room = memory - weights;
    return {
      settings, model, device, dtype, weights, memory, room, edited, stated: edited ? null : model.max_positions,
      perToken: size.perToken(settings), total: size.total(settings),
      crossing: size.crossing(settings, weights, props.token_limit), fits: size.longest(settings, room, props.token_limit),
    };
  };

  let speak = 0, frame = 0;
  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now(), now = compute();
    plot.draw({
      slope: Number(now.perToken) * now.settings.batch, tokens: now.settings.tokens, total: Number(now.total), weights: Number(now.weights), stated: now.stated,
      crossing: now.crossing === null ? null : Number(now.crossing), fits: now.device ? Number(now.fits) : 0, lines: view.lines(now), log: controls.values.scale === "log",
    });
    showFormula(now);
    showOutputs(now);
    answer.textContent = view.answer(now);
    caveats.textContent = view.caveats(now);
    sources.textContent = view.sources(now);
    reset.hidden = !now.edited;
    // Read out once the reader has stopped moving, not at every step of a drag.
    clearTimeout(speak);
    speak = setTimeout(() => { live.textContent = answer.textContent; plot.describe(kv.t("figure", { answer: answer.textContent })); }, 500);
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  plot.describe(kv.t("figure", { answer: "" }));
  draw();
};
