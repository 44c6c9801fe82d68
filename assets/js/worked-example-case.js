// The case of the page "Worked example": its controls, declared once and shown in several sections. Moving one moves its twins.
//
//   const part = KV.workedCase(kv, props, root, ["requests", "tokens"], draw);   // draw(values), once a frame at most
//   part.stage, part.panel, part.readout, part.below   where the figure, the controls, the numbers and wide tables go
//   part.set({requests: 4})                from a button; part.say(text) is read out once the reader has stopped
KV.workedCase = (() => {
  "use strict";
  const members = [], values = {};
  let frame = 0;

  const declaration = (kv, props) => {
    const ranged = (name, more) => ({ name, kind: "range", label: kv.t(name), value: props.start[name], min: props.limits[name][0], max: props.limits[name][1], exact: true, ...more });
    const log = (name, perOctave, more) => ranged(name, { scale: "log2", perOctave, ...more });
    const menu = (name, choices, more) => ({ name, kind: "select", label: kv.t(name), value: props.start[name], choices, ...more });
    const unit = (key) => (n) => kv.t(key, { n: KV.number(n) });
    return [
      ranged("requests"),
      log("tokens", 2, { format: KV.cacheSize.tokens }),
      menu("cache", props.dtypes.map((item) => [item.name, kv.t("dtype-choice", { name: item.name, bytes: item.bytes })])),
      menu("weights", props.bits.map((bits) => [String(bits), kv.t(`weights-${bits}`)])),
      menu("gpu", props.devices.map((item) => [item.name, item.title])),
      menu("tp", props.tp.map((n) => [String(n), KV.number(n)]), { help: kv.t("tp-help") }),
      ranged("reserve", { step: 0.5, format: unit("n-gib"), help: kv.t("reserve-help") }),
      log("bandwidth", 4, { format: unit("n-gbs") }),
      log("prefix", 4, { format: KV.cacheSize.tokens }),
      log("block", 1, { format: (n) => kv.t(n === 1 ? "one-token" : "n-tokens", { n: KV.number(n) }) }),
      menu("mover", props.movers.map((item) => [item.name, kv.t("mover-choice", { title: item.title, size: KV.cacheSize.binary(KV.workedMath.perToken(item, 2)) })])),
      log("moved", 2, { format: KV.cacheSize.tokens }),
      log("link", 4, { step: 0.1, format: unit("n-gbs") }),
      log("prefill", 4, { format: unit("n-tps"), help: kv.t("prefill-help") }),
    ];
  };

  // What the address says, known as soon as a section with that control stands; until then the start.
  const settle = (specs, known) => {
    for (const spec of specs) if (!Object.hasOwn(values, spec.name) || Object.hasOwn(known, spec.name)) values[spec.name] = known[spec.name] ?? spec.value;
  };
  const drawAll = () => {
    frame = 0;
    for (const member of members) if (member.root.isConnected) member.draw();
  };
  // The control that the reader is moving is left alone: setting it would rewrite a number box under the typing.
  const spread = (changes, origin) => {
    Object.assign(values, changes);
    for (const member of members) if (member !== origin) member.controls.set(changes);
    frame ||= requestAnimationFrame(drawAll);
  };

  // A number box left with something that it cannot take: the nearest value is taken, and that is said.
  const correct = (kv, specs, member, event) => {
    const box = event.target;
    const spec = box.type === "number" && specs.find((item) => item.kind === "range" && `${member.controls.input(item.name).id}-exact` === box.id);
    if (!spec) return;
    member.message.textContent = "";
    const step = spec.step || 1, raw = box.value.trim() === "" ? NaN : Number(box.value);
    const near = Math.round(raw / step) * step;
    if (Number.isFinite(raw) && raw >= spec.min && raw <= spec.max && Math.abs(near - raw) < 1e-9) return;
    const kept = Number.isFinite(raw) ? Math.min(spec.max, Math.max(spec.min, Number(near.toFixed(9)))) : values[spec.name];
    spread({ [spec.name]: kept });
    member.message.textContent = kv.t("out-of-range", { label: spec.label, low: KV.number(spec.min), high: KV.number(spec.max), step: KV.number(step), kept: KV.number(kept) });
  };

  const layout = (root) => {
    const { el } = KV, [stage, panel, readout, below] = ["stage", "panel", "readout", "below"].map((name) => el("div", { class: `we-${name}` }));
    root.append(el("div", { class: "kv-card we-card" }, stage, panel, readout, below));
    return { stage, panel, readout, below };
  };

  const join = (member) => {
    members.push(member);
    // The caller has still to build what it draws into.
    frame ||= requestAnimationFrame(drawAll);
  };
  // A section without controls of its own: it only follows.
  KV.workedWatch = (root, props, kv, draw) => {
    settle(declaration(kv, props), values);
    join({ root, controls: { set: () => {} }, draw: () => { draw(values); root.dataset.renders = Number(root.dataset.renders || 0) + 1; } });
  };

  return (kv, props, root, names, draw) => {
    const all = declaration(kv, props), specs = names.map((name) => all.find((spec) => spec.name === name));
    const parts = layout(root), message = kv.el("p", { class: "we-message", role: "status" }), live = kv.el("p", { class: "kv-sr", role: "status" });
    const member = { root, message, controls: kv.controls(parts.panel, specs, (now, name) => { message.textContent = ""; spread({ [name]: now[name] }, member); }) };
    settle(all, member.controls.values);
    const set = (changes) => spread(changes);
    const reset = kv.el("button", { class: "kv-button is-ghost we-reset", type: "button", onclick: () => set(Object.fromEntries(specs.map((spec) => [spec.name, spec.value]))) }, kv.t("reset"));
    parts.panel.append(message, reset);
    parts.panel.addEventListener("change", (event) => correct(kv, specs, member, event));
    root.append(live);
    let speak = 0;
    // Read out once the reader has stopped moving, not at every step of a drag, and only where the reader is.
    const say = (text) => {
      clearTimeout(speak);
      if (root.contains(document.activeElement)) speak = setTimeout(() => { live.textContent = text; }, 500);
    };
    member.draw = () => {
      const started = performance.now();
      draw(values);
      reset.hidden = specs.every((spec) => values[spec.name] === spec.value);
      root.dataset.drawMs = (performance.now() - started).toFixed(2);
      root.dataset.renders = Number(root.dataset.renders || 0) + 1;
    };
    join(member);
    return { ...parts, set, say, values };
  };
})();
