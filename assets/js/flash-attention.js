// FlashAttention, first figure: a Query's softmax in blocks, with three running values, beside the softmax of the whole row.
KV.widgets["flash-attention"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["flash-attention-math", "flash-attention-view", "flash-attention-draw"].map(kv.load));
  const { el } = kv, math = KV.flashAttention, view = KV.flashView(kv, props), { digits, vector } = view;
  const written = (scores) => scores.join(", "), first = props.presets[props.start], ORDERS = ["given", "reversed", "shuffled"];

  const buttons = el("div", { class: "fa-presets", role: "group", "aria-label": kv.t("presets") }), figure = el("div", { class: "fa-figure" }), panel = el("div", { class: "fa-panel" });
  const host = el("div"), sums = el("div", { class: "fa-sums kv-num", "data-out": "sums" }), state = el("div", { class: "fa-state" }), ends = el("div", { class: "fa-ends" }), bare = el("div", { class: "fa-bare" });
  const legend = el("p", { class: "kv-note fa-legend", "aria-hidden": "true" }, ["free", "now", "read", "ghost"].map((name) => el("span", {}, el("i", { class: `fa-swatch is-${name}` }), kv.t(`legend-${name}`))));
  root.append(el("div", { class: "kv-card fa-top" }, el("div", { class: "fa-stage" }, buttons, figure, legend, host), panel, el("div", { class: "fa-numbers" }, el("div", {}, state, sums), el("div", {}, ends, bare))));

  const controls = kv.controls(panel, [
    { name: "scores", kind: "text", rows: 3, label: kv.t("scores"), value: first, maxLength: 1000 },
    { name: "values", kind: "text", rows: 4, label: kv.t("values"), value: props.values, maxLength: 1000 },
    { name: "block", kind: "range", label: kv.t("block"), min: 1, max: props.most, value: props.block, format: (n) => kv.t(n === 1 ? "keys-one" : "keys-many", { n }) },
    { name: "order", kind: "select", label: kv.t("order"), value: "given", choices: ORDERS.map((name) => [name, kv.t(`order-${name}`)]) },
  ], () => schedule());
  // What a field says and, below it, why it was not taken; until it is right again, the last right one stays.
  const checked = (name, read, limits) => {
    const field = controls.input(name), wrong = el("p", { class: "fa-wrong", role: "status" }), note = el("p", { class: "kv-note" }, kv.t(`${name}-note`, limits));
    field.after(wrong, note);
    field.setAttribute("aria-describedby", `${(wrong.id = kv.unique())} ${(note.id = kv.unique())}`);
    let last = null;
    return () => {
      const found = read(controls.values[name]);
      field.toggleAttribute("data-wrong", found === null);
      field.setAttribute("aria-invalid", String(found === null));
      wrong.textContent = found === null ? kv.t(`${name}-wrong`, limits) : "";
      return (last = found || last || read(name === "scores" ? first : props.values));
    };
  };
  const readScores = checked("scores", (text) => math.parse(text, [2, props.most], props.limit), { most: props.most, limit: kv.number(props.limit) });
  const readValues = checked("values", (text) => math.pairs(text.trim() ? text : props.values, props.most, props.valueLimit), { most: props.most, limit: kv.number(props.valueLimit) });
  panel.append(el("p", { class: "kv-note" }, kv.t("toy-note"), " ", view.badge("toy")));
  const presets = Object.entries(props.presets).map(([name, scores]) => {
    const button = el("button", { type: "button", class: "kv-button is-ghost", "data-preset": name, onclick: () => { controls.set({ scores }); jump = 0; schedule(); } }, kv.t(`preset-${name}`));
    buttons.append(button);
    return { button, scores };
  });

  const plot = KV.flashDraw(figure, kv);
  const showState = view.table(state, "state-caption", ["state-what", "col-m", "col-l", "col-u"], "state", "computed");
  const showEnd = view.table(ends, "end-caption", ["end-what", "end-held", "end-output"], "end", "computed"), held = ends.appendChild(el("p", { class: "kv-note" }));
  const gap = ends.appendChild(el("p", { class: "fa-gap", "data-out": "gap", role: "status" })), every = ends.appendChild(el("p", { class: "kv-note", "data-out": "every" }));
  const showBare = view.table(bare, "bare-caption", ["bare-format", "bare-largest", "bare-sum", "bare-output"], "bare", "computed");

  let scores = [], values = [], steps = [], frames = [], full = null, groups = [], turn = [], player = null, frame = 0, jump = null;

  const compute = () => {
    const { block, order } = controls.values;
    scores = readScores();
    values = math.spread(readValues(), scores.length);
    steps = math.run(scores, values, block, order);
    groups = math.blocks(scores.length, block);
    turn = groups.map((at) => 1 + steps.findIndex((step) => step.at[0] === at[0]));
    frames = [{ kind: "start", at: 0 }, ...steps.flatMap((_, at) => ["read", "rescale", "add"].map((kind) => ({ kind, at }))), { kind: "done", at: steps.length - 1 }];
    full = math.whole(scores, values);
    KV.flashAttention.current = { scores, values };
    dispatchEvent(new CustomEvent("kv-flash", { detail: KV.flashAttention.current }));
  };

  // What holds at a frame: m, the weights that l has summed, those before the rescaling, and the state.
  const holds = ({ kind, at }) => {
    const step = steps[at], done = kind === "add" || kind === "done", state = kind === "start" || kind === "read" ? step.before : done ? step.after : step.shrunk;
    const base = kind === "start" || kind === "read" ? step.before.m : step.after.m, place = (j) => steps.findIndex((other) => other.at.includes(j));
    const counted = (j) => kind !== "start" && (place(j) < at || (done && place(j) === at));
    const against = (j, top) => (top === math.NOTHING ? 0 : Math.exp(scores[j] - top));
    return {
      state, m: base, next: kind === "read" ? step.after.m : null, old: kind === "rescale" ? step.before.m : null, values,
      weights: scores.map((_, j) => (counted(j) ? against(j, base) : null)),
      ghost: scores.map((_, j) => (kind === "rescale" && place(j) < at ? against(j, step.before.m) : null)),
      phase: scores.map((_, j) => (kind === "start" ? "free" : kind === "done" ? "read" : place(j) < at ? "read" : place(j) === at ? "now" : "free")),
    };
  };
  const arithmetic = ({ kind, at }) => {
    const step = steps[at], { m, l, u } = step.after, old = step.before, blank = m === math.NOTHING;
    if (kind === "start") return [kv.t("sum-start")];
    if (kind === "done") return [kv.t("sum-done", { u: vector(step.after.u), l: digits(l), out: l === 0 ? kv.t("nothing") : vector(math.output(step.after)) })];
    const lines = [kv.t("sum-max", { old: digits(old.m), top: digits(step.top), m: digits(m) }),
      blank ? kv.t("sum-blank") : kv.t("sum-factor", { old: digits(old.m), m: m < 0 ? `(${digits(m)})` : digits(m), factor: digits(step.factor) })];
    if (kind === "read" || blank) return lines;
    const known = { factor: digits(step.factor), l0: digits(old.l), u0: vector(old.u), l1: digits(step.shrunk.l), u1: vector(step.shrunk.u), sum: digits(step.sum), part: vector(step.part), l: digits(l), u: vector(u) };
    // What a block adds, term by term, as long as that can be read.
    const terms = step.p.map((p, i) => `${digits(p)} × ${vector(values[step.at[i]])}`).join(" + ");
    const parts = kind === "add" && step.at.length > 1 && step.at.length <= 6 ? [kv.t("sum-weights", { list: step.p.map(digits).join(" + "), sum: known.sum }), kv.t("sum-values", { terms, part: known.part })] : [];
    return [...lines, ...parts, kv.t(kind === "add" ? "sum-l" : "sum-l-rescaled", known), kv.t(kind === "add" ? "sum-u" : "sum-u-rescaled", known)];
  };
  const say = (i) => {
    const { kind, at } = frames[i], step = steps[at], n = at + 1, keys = step.at.length === 1 ? kv.t("say-key", { from: step.at[0] + 1 }) : kv.t("say-keys", { from: step.at[0] + 1, to: step.at[step.at.length - 1] + 1 });
    const which = kind === "rescale" ? (step.after.m === math.NOTHING ? "blank" : step.before.m === math.NOTHING ? "first" : step.factor === 1 ? "same" : "rescale") : kind;
    return kv.t(`say-${which}`, { n, keys, top: digits(step.top), factor: digits(step.factor), m: digits(step.after.m), blocks: steps.length });
  };

  const paint = (i) => {
    const now = holds(frames[i]), { kind, at } = frames[i], step = steps[at], later = kind === "start" || kind === "read";
    plot.draw({ scores, groups, turn, ...now, words: { number: digits, lower: kv.t("lower"), values: kv.t("values-figure") } });
    const row = (name, s) => [kv.t(`state-${name}`), ...(s ? [digits(s.m), digits(s.l), vector(s.u)] : ["…", "…", "…"])];
    showState([row("before", step.before), row("rescaled", later ? null : step.shrunk), row("after", kind === "add" || kind === "done" ? step.after : null)]);
    sums.replaceChildren(...arithmetic(frames[i]).map((line) => el("p", {}, line)));
    const seen = now.state.l > 0, flash = math.output(now.state), ended = kind === "done" || (kind === "add" && at === steps.length - 1), block = Math.min(controls.values.block, scores.length);
    showEnd([[kv.t("end-flash"), String(2 + props.dim), seen ? vector(flash) : kv.t("nothing")],
      [kv.t("end-full"), String(scores.length), full.m === math.NOTHING ? kv.t("nothing") : vector(full.output)]]);
    held.textContent = kv.t("held", { dim: props.dim, block });
    gap.textContent = kv.t(full.m === math.NOTHING ? "gap-blank" : ended ? "gap" : seen ? "gap-later" : "gap-none", { gap: digits(math.gap(flash, full.output)), read: at + (kind === "add" ? 1 : 0), blocks: steps.length });
    plot.describe(kv.t("figure", { words: say(i) }));
    root.dataset.frame = `${kind}.${at}`;
  };
  // Every block size in every order, against the softmax of the whole row.
  const worst = () => Math.max(...ORDERS.flatMap((order) => scores.map((_, i) => {
    const ran = math.run(scores, values, i + 1, order);
    return math.gap(math.output(ran[ran.length - 1].after), full.output);
  })));

  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now(), ended = player !== null && player.index === frames.length - 1;
    compute();
    for (const { button, scores: preset } of presets) button.setAttribute("aria-pressed", String(written(math.parse(preset, [2, props.most], props.limit)) === written(scores)));
    every.textContent = kv.t("every", { n: 3 * scores.length, gap: digits(worst()) });
    showBare(["fp16", "fp32"].map((format) => { const found = math.bare(scores, values, format); return [format, digits(found.largest), digits(found.sum), vector(found.output)]; }));
    if (player === null) player = kv.player(host, { length: frames.length, draw: paint, describe: say, label: kv.t("player"), interval: 1600, key: "step" });
    else player.setLength(frames.length, jump ?? (ended ? frames.length - 1 : Math.min(player.index, frames.length - 1)));
    jump = null;
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  const schedule = () => { if (player) player.pause(); frame ||= requestAnimationFrame(draw); };
  draw();
};
