// Worked example, B: what a decode step reads, per step and per token, over batch sizes.
KV.widgets["worked-example-bandwidth"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const part = KV.workedCase(kv, props, root, ["requests", "tokens", "bandwidth", "gpu", "tp", "cache", "weights"], (values) => draw(values));

  const panels = ["step", "token"].map((name) => {
    const title = el("p", { class: "kv-note" }), bars = el("div", { class: "we-columns" });
    return { name, title, bars, node: el("div", { class: "we-chart" }, title, bars) };
  });
  const show = view.figure(part.stage, el("div", { class: "we-charts" }, panels.map((panel) => panel.node)), view.key([["weights", "W"], ["k", "K"], ["v", "V"]]));
  const peak = el("p", { class: "kv-note" }), peakButton = el("button", { type: "button", class: "kv-button is-ghost we-peak", onclick: () => part.set({ bandwidth: Number(BigInt(view.settings(part.values).device.bandwidth_bytes_per_s) / 10n ** 9n) }) });
  part.panel.append(peak, peakButton);
  const list = view.outputs(part.readout, { "each-time": "computed", "weights-time": "computed", "kv-time": "computed", "step-time": "computed", "step-read": "computed", "per-token": "computed", "kv-share": "computed", bound: "computed", even: "computed" });
  const table = view.table(part.below, kv.t("batches-caption"), ["batch", "weights", "kv", "step", "token", "time"].map((name) => kv.t(`batches-${name}`)), "computed");

  // Two halves of the same bytes: a Key and a Value.
  const column = (step, top, highest, here) => {
    const heights = { weights: step.weights, k: step.kv / 2n, v: step.kv - step.kv / 2n };
    const stack = Object.entries(heights).map(([kind, bytes]) => {
      const node = view.piece(kind, kind[0].toUpperCase()), percent = view.share(bytes * top.scale / top.by, highest);
      node.style.height = `${percent}%`;
      node.classList.toggle("is-thin", percent < 11);
      return node;
    });
    return el("div", { class: `we-column${here ? " is-here" : ""}` }, el("div", { class: "we-stack" }, stack.reverse()), el("span", { class: "we-tick kv-num" }, KV.number(top.batch)));
  };
  const drawPanel = (panel, rows, now) => {
    const scaled = rows.map(([batch, step]) => ({ batch, step, scale: 1n, by: panel.name === "token" ? BigInt(batch) : 1n }));
    const highest = scaled.reduce((most, { step, by }) => (step.total / by > most ? step.total / by : most), 1n);
    panel.title.textContent = kv.t(`chart-${panel.name}`, { size: size.decimal(highest) });
    panel.bars.replaceChildren(...scaled.map((top) => column(top.step, top, highest, top.batch === now.requests)));
  };

  const draw = (values) => {
    const now = view.settings(values), step = math.step(now);
    const batches = [...new Set([...props.batches, now.requests])].sort((a, b) => a - b), rows = batches.map((batch) => [batch, math.step({ ...now, requests: batch })]);
    for (const panel of panels) drawPanel(panel, rows, now);
    const words = { each: size.binary(step.each), eachTime: math.duration(step.eachNs), time: math.duration(step.ns), n: now.requests, share: math.percent(step.kv, step.total), even: size.count(step.evenBatch), rate: size.count(step.tokensPerSecond) };
    const text = view.join(kv.t(now.tp === 1 ? "b-each" : "b-each-rank", words), kv.t(now.requests === 1 ? "b-step-one" : "b-step", words), kv.t(step.evenBatch === 1n ? "b-even-one" : "b-even", words), now.tp > 1 ? kv.t("b-ranks") : "");
    show(kv.t("b-figure", { text }), text);
    peak.textContent = kv.t("peak", { title: now.device.title, n: size.decimal(BigInt(now.device.bandwidth_bytes_per_s)), source: now.device.source });
    peak.append(" ", view.badge("quoted"));
    peakButton.textContent = kv.t("use-peak");
    list({
      "each-time": math.duration(step.eachNs), "weights-time": math.duration(step.weightsNs), "kv-time": math.duration(step.kvNs), "step-time": math.duration(step.ns),
      "step-read": kv.t("sum", { weights: size.decimal(step.weights), kv: size.decimal(step.kv), total: size.decimal(step.total) }), "per-token": size.decimal(step.bytesPerToken),
      "kv-share": math.percent(step.kv, step.total), bound: kv.t("n-tps", { n: size.count(step.tokensPerSecond) }), even: view.requests(step.evenBatch),
    });
    table(rows.map(([batch, row]) => [KV.number(batch), size.decimal(row.weights), size.decimal(row.kv), size.decimal(row.total), size.decimal(row.bytesPerToken), math.duration(row.ns)]), batches.indexOf(now.requests));
    part.say(text);
  };
};
