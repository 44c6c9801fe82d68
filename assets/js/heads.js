// Heads: which Query heads read which Keys and Values, what is kept of them, and what that costs. Nothing asks the server.
KV.widgets.heads = async (root, props, kv) => {
  "use strict";
  await Promise.all(["heads-math", "heads-draw"].map(kv.load));
  const { el } = kv, math = KV.heads, badge = () => el("span", { class: "kv-badge kv-computed" },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badge.mark), props.badge.word);
  const NUMBERS = ["heads", "kv_heads", "head_dim", "latent", "rope", "span", "layers"];
  const first = props.presets[props.start], dtypes = Object.fromEntries(props.dtypes.map((item) => [item.name, item]));

  // Sliders of `heads` and `kv_heads` walk lists; the address holds the numbers themselves.
  let choices = math.divisors(first.heads);
  const headsAt = (n) => Math.max(0, props.heads.findLastIndex((count) => count <= n));
  const dim = props.limits.head_dim, range = (name, more) => ({ name, kind: "range", label: kv.t(name), min: props.limits[name][0], max: props.limits[name][1], value: first[name], ...more });
  const declaration = [
    { name: "heads", key: false, kind: "range", label: kv.t("heads"), min: 0, max: props.heads.length - 1, value: headsAt(first.heads), format: (at) => String(props.heads[at]) },
    { name: "kv_heads", key: false, kind: "range", label: kv.t("kv_heads"), min: 0, max: choices.length - 1, value: choices.indexOf(first.kv_heads), format: (at) => String(choices[at]) },
    range("latent", { step: 32, format: (n) => (n ? kv.number(n) : kv.t("latent-off")) }),
    range("rope", { step: 8 }), range("span", { format: (n) => kv.t(n === 1 ? "span-one" : "span-many", { n }) }),
    range("head_dim", { min: dim[0], max: dim[1], step: 8 }), range("layers", { exact: true }),
    { name: "dtype", kind: "select", label: kv.t("dtype"), value: "bf16", choices: props.dtypes.map((item) => [item.name, kv.t("dtype-choice", item)]) },
  ];

  const buttons = el("div", { class: "hd-presets", role: "group", "aria-label": kv.t("presets") });
  const stage = el("div", { class: "hd-stage" }), panel = el("div", { class: "hd-panel" }), figure = el("div", { class: "hd-figure" });
  const answer = el("p", { class: "hd-answer" }), live = el("p", { class: "kv-sr", role: "status" }), readout = el("dl", { class: "hd-readout" });
  const formula = el("p", { class: "hd-formula kv-num" });
  stage.append(buttons, figure, el("p", { class: "kv-note hd-legend", "aria-hidden": "true" }, ["kept", "made", "mha"].map((name) =>
    el("span", {}, el("i", { class: `hd-key is-${name}` }), kv.t(`legend-${name}`)))));
  // The sentence stands below the sliders on a narrow page: its lines come and go, and no slider may move under a finger.
  root.append(el("div", { class: "kv-card hd-top" }, stage, panel, el("div", { class: "hd-numbers" }, answer, live, readout, formula)));
  const controls = kv.controls(panel, declaration, (values, name) => { if (name === "heads") regroup(now().kv_heads); keep(); schedule(); });
  const plot = KV.headsDraw(figure, kv);

  const now = () => {
    const v = controls.values;
    return { heads: props.heads[v.heads], kv_heads: choices[v.kv_heads], head_dim: v.head_dim, latent: v.latent, rope: v.rope, span: v.span, layers: v.layers, element_bytes: dtypes[v.dtype].bytes };
  };
  // KV heads divide the Query heads: another number of these brings another list of those.
  function regroup(wanted) {
    const spec = declaration[1], slider = controls.input("kv_heads");
    choices = math.divisors(props.heads[controls.values.heads]);
    slider.max = spec.max = choices.length - 1;
    controls.set({ kv_heads: Math.max(0, choices.findLastIndex((count) => count <= wanted)) });
  }
  const adopt = (s) => {
    controls.set({ heads: headsAt(s.heads) });
    regroup(s.kv_heads);
    controls.set(Object.fromEntries(NUMBERS.slice(2).map((name) => [name, s[name]])));
    keep();
  };
  const keep = () => {
    const s = now();
    KV.state.set({ heads: s.heads === first.heads ? null : s.heads, kv_heads: s.kv_heads === first.kv_heads ? null : s.kv_heads });
  };
  const presets = Object.entries(props.presets).map(([name, s]) => {
    const button = el("button", { type: "button", class: "kv-button is-ghost", "data-preset": name, onclick: () => { adopt(s); schedule(); } }, kv.t(`preset-${name}`));
    buttons.append(button);
    return { button, s };
  });
  const cells = Object.fromEntries(props.outputs.map((name) => {
    const output = el("output", { class: "kv-num", "data-out": name });
    readout.append(el("div", {}, el("dt", {}, kv.t(`out-${name}`)), el("dd", {}, output)));
    return [name, output];
  }));
  const asked = ["heads", "kv_heads"].map((name) => Number(KV.state.get(name)) || null);
  if (props.heads.includes(asked[0])) controls.set({ heads: headsAt(asked[0]) });
  regroup(math.divisors(props.heads[controls.values.heads]).includes(asked[1]) ? asked[1] : first.kv_heads);
  keep();

  const bytes = (n) => kv.t(n < 1024n ? "bytes-few" : "bytes", { size: KV.bytes(Number(n)), n: math.count(n) });
  const spanOf = (s) => Math.min(s.span, s.layers), n = KV.number;
  const say = (s) => {
    const kind = math.kind(s), group = s.heads / s.kv_heads;
    const which = s.heads === 1 && kind === "mha" ? "single" : kind === "mla" && !s.rope ? "mla-bare" : kind;
    const words = [kv.t(`say-${which}`, { heads: s.heads, kv: s.kv_heads, group, latent: n(s.latent), rope: s.rope, kept: n(s.latent + s.rope) })];
    if (spanOf(s) > 1) words.push(kv.t("say-cla", { span: spanOf(s) }));
    return words.join(kv.t("join"));
  };
  const show = (s) => {
    const kind = math.kind(s), ratio = math.ratio(s), each = math.layerBytes(s), owners = math.owners(s);
    cells.kind.textContent = spanOf(s) > 1 ? kv.t("kind-cla", { kind: kind.toUpperCase(), n: spanOf(s) }) : kind.toUpperCase();
    cells.elements.textContent = kv.t(kind === "mla" ? "elements-latent" : "elements-heads", { kv: s.kv_heads, dim: s.head_dim, latent: n(s.latent), rope: s.rope, n: math.count(math.elements(s)) });
    cells.layer.textContent = bytes(each);
    cells.owners.textContent = kv.t("owners", { n: owners, layers: s.layers });
    cells.total.textContent = bytes(math.total(s));
    cells.mha.textContent = bytes(math.mha(s));
    cells.ratio.textContent = kv.t(`ratio-${ratio.kind}${ratio.exact ? "" : "-about"}`, ratio);
    cells.intensity.textContent = kv.t("intensity", { n: math.intensity(s) });
    formula.replaceChildren(kv.t("formula", { n: math.count(math.elements(s)), bytes: s.element_bytes, owners, total: math.count(math.total(s)) }), " ", badge());
  };
  const label = (s) => ({
    inside: kv.t("inside"), across: kv.t(s.layers > 4 ? "across" : s.layers > 1 ? "across-all" : "across-one", { shown: 4, layers: s.layers }),
    kept: kv.t(s.latent ? "kept-latent" : s.kv_heads === 1 ? "kept-one" : "kept-heads", { kv: s.kv_heads, heads: s.heads, latent: n(s.latent), rope: s.rope }),
    layer: (n) => kv.t("layer", { n }), reads: (n) => kv.t("reads", { n }),
  });

  let speak = 0, frame = 0;
  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now(), s = now(), text = say(s);
    for (const { button, s: preset } of presets) button.setAttribute("aria-pressed", NUMBERS.every((name) => preset[name] === s[name] || (preset.latent && name === "kv_heads")));
    for (const [name, off] of [["kv_heads", s.latent > 0], ["rope", s.latent === 0]]) {
      controls.input(name).disabled = off;
      controls.input(name).closest(".kv-control").classList.toggle("is-off", off);
    }
    plot.draw(s, label(s));
    show(s);
    answer.textContent = text;
    clearTimeout(speak);
    speak = setTimeout(() => { live.textContent = text; plot.describe(kv.t("figure", { text })); }, 500);
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  plot.describe(kv.t("figure", { text: "" }));
  draw();
};
