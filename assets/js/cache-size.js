// Cache size: a model, a length and a GPU decide what is drawn. All of it is worked out here; nothing asks the server, but for
// reading a pasted config.json.
KV.widgets["cache-size"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["math", "tensors", "scales", "pick", "source", "plot", "formula", "ledger", "view", "state"].map((part) => kv.load(`cache-size-${part}`)));
  const { el } = kv, size = KV.cacheSize;
  const view = KV.cacheSizeView(kv, props.badges);

  const SHAPE = ["layers", "kv_heads", "head_dim"];
  const ranged = (name, value, perOctave, more) => ({
    name, kind: "range", scale: "log2", perOctave, label: kv.t(name), value, min: props.limits[name][0], max: props.limits[name][1], ...more,
  });
  // The shape goes with the model, so the address holds it only where it departs from the model's.
  const shape = (name, perOctave) => ranged(name, props.models.find((item) => item.name === props.start.model).shape[name], perOctave, { key: false });
  const menu = (name, value, choices) => ({ name, kind: "select", label: kv.t(name), value, choices });
  const formatName = (form) => (form.plain ? kv.t("dtype-choice", { name: form.name, bytes: form.packing[0] / 8 }) : form.name);
  const formats = props.formats.map((form) => ({ ...form, plain: form.packing[1] === null && !Object.keys(form.own).length && !form.residual_length }));
  const declaration = [
    menu("gpu", props.start.gpu, [...props.devices.map((item) => [item.name, item.title]), ["none", kv.t("gpu-none")]]),
    ranged("tokens", props.start.tokens, 4, { format: size.tokens }),
    ranged("batch", 1, 1),
    menu("dtype", "bf16", formats.map((form) => [form.name, formatName(form)])),
    menu("weights", "16", ["16", "8", "4"].map((bits) => [bits, kv.t(`weights-${bits}`)])),
    menu("tp", "1", props.ranks.map((n) => [String(n), kv.t(n === 1 ? "tp-one" : "tp-many", { n })])),
    shape("layers", 8), shape("kv_heads", 1), shape("head_dim", 2),
    menu("scale", "log", ["log", "linear"].map((name) => [name, kv.t(`scale-${name}`)])),
  ];

  const figure = el("div", { class: "cs-figure" }), panel = el("div", { class: "cs-panel" }), top = el("div", { class: "kv-card cs-top" });
  const readout = el("div", { class: "cs-readout" }), answer = el("p", { class: "cs-answer" }), caveats = el("p", { class: "kv-note" });
  const live = el("p", { class: "kv-sr", role: "status" }), message = el("p", { class: "cs-message", role: "status" });
  const legend = el("p", { class: "kv-note cs-legend", "aria-hidden": "true" });
  const empty = el("p", { class: "cs-empty", hidden: true }, kv.t("config-empty"));
  const reset = el("button", { class: "kv-button is-ghost", type: "button", onclick: () => adopt() }, kv.t("reset"));
  root.append(top);
  top.append(el("div", { class: "cs-stage" }, empty, figure, legend, answer, caveats, live), panel, readout);
  const source = KV.cacheSizeSource(panel, props, kv, (turned) => (turned ? adopt() : changed()));
  const controls = kv.controls(panel, declaration, () => changed());
  panel.append(message, reset);
  const plot = KV.cacheSizePlot(figure, kv, (tokens) => { controls.set({ tokens }); changed(); });
  const details = root.appendChild(el("div", { class: "cs-details" }));
  const showFormula = KV.cacheSizeFormula(details, kv, controls, view.badge), showOutputs = view.outputs(readout);
  const sources = details.appendChild(el("p", { class: "kv-note" }));
  const ledger = KV.cacheSizeLedger(root.appendChild(el("div", { class: "cs-books" })), kv, view.badge);
  const state = KV.cacheSizeState({ ...props, formats }, source, controls);

  // Back to the shape of the model that an own shape departs from.
  const adopt = () => { controls.set(Object.fromEntries(SHAPE.map((name) => [name, source.base().shape[name]]))); changed(); };
  const changed = () => {
    message.textContent = "";
    const own = source.mode() === "own";
    KV.state.set(Object.fromEntries(SHAPE.map((name) => [name, own && controls.values[name] !== source.base().shape[name] ? controls.values[name] : null])));
    schedule();
  };
  for (const from of [(name) => source.base().shape[name], (name) => KV.state.get(name)]) controls.set(Object.fromEntries(SHAPE.map((name) => [name, from(name)])));

  // A number box left with something that it cannot take: the nearest value is taken, and that is said.
  panel.addEventListener("change", (event) => {
    const box = event.target, spec = declaration.find((item) => `${controls.input(item.name).id}-exact` === box.id);
    if (!spec) return;
    const raw = box.value.trim() === "" ? NaN : Number(box.value);
    if (Number.isInteger(raw) && raw >= spec.min && raw <= spec.max) return;
    const kept = Number.isFinite(raw) ? Math.min(spec.max, Math.max(spec.min, Math.round(raw))) : controls.values[spec.name];
    controls.set({ [spec.name]: kept });
    changed();
    message.textContent = kv.t("out-of-range", { label: spec.label, low: size.count(spec.min), high: size.count(spec.max), kept: size.count(kept) });
  });

  const legends = (now) => [
    ...["here", "crossing", "fits"].map((kind) => el("span", {}, kv.t(`legend-${kind}`))),
    now.bends.length ? el("span", {}, kv.t("legend-bend")) : null,
    ...(now.kinds.length > 1 ? now.kinds.map((kind) => el("span", { class: "cs-key" }, el("span", { class: `cs-kind cs-kind-${ledger.mark(kind.kind)[1]}` }, ledger.mark(kind.kind)[0]), ` ${kind.title}`)) : []),
  ].filter(Boolean);
  const picture = (now) => ({
    log: controls.values.scale === "log", tokens: now.tokens, weights: Number(now.weightsOne || 0n), stated: now.stated, bends: now.bends,
    crossing: now.crossing, fits: now.device && now.room >= 0n ? now.fits : 0, lines: view.lines(now),
    bytes: (tokens) => now.batch * size.near(now.part, tokens),
    kinds: now.kinds.map((kind) => ({
      kind: kind.kind, letter: ledger.mark(kind.kind)[0], colour: ledger.mark(kind.kind)[1], bytes: (tokens) => now.batch * size.near(kind.part, tokens),
    })),
  });

  let speak = 0, frame = 0, keys = "";
  // Which controls and parts there are; what a model cannot have (a format, a split) is set back, and that is said.
  const settle = () => {
    const mode = source.mode(), nothing = mode === "config" && !source.entry();
    for (const name of SHAPE) controls.input(name).closest(".kv-control").hidden = mode !== "own";
    root.classList.toggle("is-empty", nothing);
    empty.hidden = !nothing;
    reset.hidden = mode !== "own" || SHAPE.every((name) => controls.values[name] === source.base().shape[name]);
    if (nothing) return false;
    for (const option of controls.input("dtype").options) option.disabled = !state.suited(formats.find((form) => form.name === option.value));
    if (controls.input("dtype").selectedOptions[0].disabled) {
      message.textContent = kv.t("unsuited", { format: controls.values.dtype });
      controls.set({ dtype: "bf16" });
    }
    const heads = state.uneven();
    if (heads) {
      message.textContent = kv.t("uneven", { ranks: controls.values.tp, heads });
      controls.set({ tp: "1" });
    }
    return true;
  };
  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now();
    if (settle()) {
      const now = state.now();
      plot.draw(picture(now));
      showFormula(now);
      showOutputs(now);
      ledger.draw(now);
      answer.textContent = view.answer(now);
      caveats.textContent = view.caveats(now);
      sources.textContent = view.sources(now);
      const wanted = now.kinds.map((kind) => kind.kind).join() + now.bends.length;
      if (wanted !== keys) legend.replaceChildren(...legends(now));
      keys = wanted;
      // Read out once the reader has stopped moving, not at every step of a drag.
      clearTimeout(speak);
      speak = setTimeout(() => { live.textContent = answer.textContent; plot.describe(kv.t("figure", { answer: answer.textContent })); }, 500);
    }
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  plot.describe(kv.t("figure", { answer: "" }));
  draw();
};
