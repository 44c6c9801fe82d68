// Worked example, D: a cache crosses a link, once or for every token, against computing it again.
KV.widgets["worked-example-move"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const part = KV.workedCase(kv, props, root, ["mover", "moved", "link", "prefill", "cache"], (values) => draw(values));

  const presets = el("div", { class: "we-presets", role: "group", "aria-label": kv.t("presets") });
  for (const [name, values] of Object.entries(props.presets)) {
    presets.append(el("button", { type: "button", class: "we-preset", "data-preset": name, onclick: () => part.set(values) }, kv.t(`preset-${name}`)));
  }
  part.stage.append(presets);
  const bars = ["load", "recompute"].map((name) => {
    const bar = el("span", { class: `we-time is-${name}` }), text = el("span", { class: "kv-num" });
    return { name, bar, text, node: el("div", { class: "we-race" }, el("span", { class: "we-race-name" }, kv.t(`race-${name}`), " ", text), el("div", { class: "we-track" }, bar)) };
  });
  const show = view.figure(part.stage, bars.map((item) => item.node));
  const list = view.outputs(part.readout, { "one-gb": "computed", "move-bytes": "computed", "load-time": "computed", "load-rate": "computed", "recompute-time": "computed", "even-link": "computed", "each-token": "computed" });
  const note = part.below.appendChild(el("p", { class: "kv-note" }));

  const draw = (values) => {
    const now = view.settings(values), each = math.perToken(now.mover, now.element_bytes), rate = values.prefill;
    const move = math.move(values.moved, each, now.link, rate), longest = move.loadNs > move.recomputeNs ? move.loadNs : move.recomputeNs;
    const times = { load: move.loadNs, recompute: move.recomputeNs };
    for (const { name, bar, text } of bars) {
      bar.style.width = `${view.share(times[name], longest)}%`;
      text.textContent = math.duration(times[name]);
    }
    const words = { size: size.binary(move.bytes), load: math.duration(move.loadNs), recompute: math.duration(move.recomputeNs), rate: size.count(move.loadRate), prefill: size.count(rate), times: math.times(move.recomputeNs, move.loadNs), even: size.decimal(move.even) };
    const verdict = move.loadNs >= move.recomputeNs ? "d-slower" : move.recomputeNs < move.loadNs * 2n ? "d-close" : "d-faster";
    const text = view.join(kv.t("d-times", words), kv.t(verdict, words));
    show(kv.t("d-figure", { text }), text);
    list({
      "one-gb": math.duration(math.transferNs(10n ** 9n, now.link)), "move-bytes": kv.t("move-sum", { n: size.count(values.moved), each: size.binary(each), both: math.both(move.bytes) }),
      "load-time": math.duration(move.loadNs), "load-rate": kv.t("n-tps", { n: size.count(move.loadRate) }), "recompute-time": math.duration(move.recomputeNs),
      "even-link": `${size.decimal(move.even)}/s`, "each-token": math.duration(move.loadNs),
    });
    note.textContent = view.join(kv.t("source-model", now.mover), now.dtype.note);
    part.say(text);
  };
};
