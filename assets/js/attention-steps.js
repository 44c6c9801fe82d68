// Prefill and decode on the sentence above: the model's own tokens, and real bytes in its cache.
KV.widgets["attention-steps"] = async (root, props, kv) => {
  "use strict";
  const { el } = KV;
  await Promise.all(["attention-draw", "attention-step-model"].map(KV.load));
  const draw = KV.attention, model = KV.attentionSteps;

  const wait = el("p", { class: "kv-note" }, kv.t("steps-wait"));
  const stage = el("div", { class: "kv-attn-steps", hidden: true });
  root.append(wait, stage);
  const badge = (which) => el("span", { class: `kv-badge kv-${which.name}` },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, which.mark), which.word);
  let player = null;

  const square = (letter, state) => el("span", { class: `kv-attn-dot is-${letter} is-${state}`, "aria-hidden": "true" }, letter.toUpperCase());
  const legend = () => el("ul", { class: "kv-attn-legend" },
    el("li", {}, el("span", { class: "kv-attn-cell is-input", "aria-hidden": "true" }), kv.t("legend-input")),
    el("li", {}, el("span", { class: "kv-attn-cell is-sampled", "aria-hidden": "true" }), kv.t("legend-sampled")),
    el("li", {}, square("q", "used"), kv.t("legend-q")), el("li", {}, square("k", "kept"), kv.t("legend-k")),
    el("li", {}, square("v", "kept"), kv.t("legend-v")), el("li", {}, square("k", "new"), square("v", "new"), kv.t("legend-new")),
    el("li", {}, square("k", "made"), square("v", "made"), kv.t("legend-made")),
    el("li", {}, square("k", "read"), square("v", "read"), kv.t("legend-read")));

  // What stands in a token's cell at a frame.
  const cellState = (frame, at, index, prompt) => {
    const { kind } = frame;
    const mine = frame.step === 0 ? kind === "prefill" : index === at.input;
    const asks = (kind === "prefill" && index < prompt) || (index === at.input && kind !== "sample");
    const born = mine && (kind === "prefill" || kind === "read");
    const made = index === at.input && kind === "input";
    return {
      input: mine && (kind !== "sample"), sampled: index === at.visible - 1 && (kind === "first" || kind === "sample"),
      q: asks ? "used" : "none", kv: born ? "new" : made ? "made" : index < at.cached ? (kind === "read" ? "read" : "kept") : "none",
    };
  };

  const build = (reading) => {
    const prompt = reading.tokens.length, made = reading.generated.length;
    stage.replaceChildren();
    stage.hidden = made === 0;
    wait.hidden = made > 0;
    if (made === 0) { wait.textContent = kv.t("steps-none"); return; }
    const pieces = [...reading.tokens, ...reading.generated], frames = model.frames(prompt, made);
    const cells = pieces.map((piece, index) => {
      const q = square("q", "none"), k = square("k", "none"), v = square("v", "none");
      const node = el("li", { class: `kv-attn-cell${index < prompt ? "" : " is-generated"}` }, el("span", { class: "kv-attn-index" }, String(index)), draw.token(piece),
        el("span", { class: "kv-attn-dots" }, q, k, v));
      return { node, q, k, v };
    });
    const name = el("p", { class: "kv-attn-stage-name" });
    const row = el("ol", { class: "kv-attn-text", "aria-label": kv.t("text-name") }, cells.map((cell) => cell.node));
    const counters = table(reading);
    stage.append(name, row, legend());
    const host = el("div");
    stage.append(host, counters.node);

    const paint = (index) => {
      const frame = frames[index], at = model.state(prompt, frame);
      name.textContent = frame.kind === "prompt" ? kv.t("stage-prompt") : frame.step === 0 ? kv.t("stage-prefill") : kv.t("stage-decode", { step: frame.step });
      cells.forEach((cell, place) => {
        const seen = cellState(frame, at, place, prompt);
        cell.node.hidden = place >= at.visible;
        cell.node.classList.toggle("is-input", seen.input);
        cell.node.classList.toggle("is-sampled", seen.sampled);
        cell.q.className = `kv-attn-dot is-q is-${seen.q}`;
        cell.k.className = `kv-attn-dot is-k is-${seen.kv}`;
        cell.v.className = `kv-attn-dot is-v is-${seen.kv}`;
      });
      counters.show(at);
      stage.dataset.frame = `${frame.kind}.${frame.step}`;
    };
    player = KV.player(host, { length: frames.length, label: kv.t("player"), interval: 1400, draw: paint, describe: (index) => say(reading, frames, index) });
  };

  const say = (reading, frames, index) => {
    const { kind, step } = frames[index], prompt = reading.tokens.length;
    const input = step > 0 ? draw.quoted(reading.generated[step - 1]) : "", out = draw.quoted(reading.generated[step]);
    const last = kind === "sample" && index === frames.length - 1;
    return kv.t(last ? "say-last" : `say-${kind}`, {
      step, count: kind === "read" ? prompt + step : prompt, layers: reading.layers, input, token: kind === "input" || kind === "read" ? input : out,
    });
  };

  // The counters; the bytes are those of the tensors in the model's own cache at that moment.
  const table = (reading) => {
    const prompt = reading.tokens.length, field = () => el("td", { class: "kv-num" });
    const cached = field(), bytes = field(), now = [field(), field()], total = [field(), field()];
    cached.colSpan = bytes.colSpan = 2;
    const head = (text, ...more) => el("th", { scope: "row" }, text, more);
    const node = el("table", { class: "kv-table kv-attn-counters" }, el("tbody", {},
      el("tr", {}, head(kv.t("count-cached")), cached), el("tr", {}, head(kv.t("count-bytes"), " ", badge(props.measured)), bytes),
      el("tr", {}, el("td", {}), el("th", { scope: "col" }, kv.t("with-cache")), el("th", { scope: "col" }, kv.t("without-cache"), " ", badge(props.computed))),
      el("tr", {}, head(kv.t("count-now")), now), el("tr", {}, head(kv.t("count-total")), total)));
    const formula = el("p", { class: "kv-note kv-num" }, kv.t("bytes-line", {
      layers: reading.layers, heads: reading.kvHeads, dim: reading.dim, size: reading.elementBytes, each: KV.number(reading.bytesPerToken),
    }), " ", badge(props.computed));
    const show = (at) => {
      const real = at.cached === 0 ? 0 : reading.cacheBytes[at.cached - prompt];
      cached.textContent = KV.number(at.cached);
      cached.dataset.value = at.cached;
      bytes.dataset.value = real;
      bytes.textContent = kv.t("count-real", {
        bytes: KV.number(real), size: KV.bytes(real), cached: at.cached, each: KV.number(reading.bytesPerToken),
        difference: KV.number(real - at.cached * reading.bytesPerToken),
      });
      [[now, at.now], [total, at.total]].forEach(([fields, count]) => {
        fields[0].textContent = KV.number(count.cache);
        fields[1].textContent = KV.number(count.plain);
      });
    };
    return { node: el("div", {}, node, formula), show };
  };

  addEventListener("kv-attention", (event) => { if (root.isConnected) { if (player) player.pause(); build(event.detail); } });
  if (draw.reading) build(draw.reading);
};
