// What the scores would take if they were stored, and what crosses between memory and chip, for the reader's own lengths.
KV.widgets["flash-attention-bytes"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["flash-attention-view", "flash-attention-bytes-math", "flash-attention-flow"].map(kv.load));
  const { el } = kv, math = KV.flashBytes, view = KV.flashView(kv, props), sizes = Object.fromEntries(props.dtypes.map((item) => [item.name, item.bytes])), start = props.start;
  const stage = el("div", { class: "fa-stage" }), panel = el("div", { class: "fa-panel" }), readout = el("dl", { class: "fa-readout" }), answer = el("p", { class: "fa-answer", "data-out": "answer" }), live = el("p", { class: "kv-sr", role: "status" });
  const moved = el("p", { class: "kv-note fa-moved", "data-out": "moved" }), figure = el("div", { class: "fa-figure" });
  root.append(el("div", { class: "kv-card fa-top" }, stage, panel, el("div", { class: "fa-numbers is-wide" }, el("p", { class: "kv-note" }, kv.t("readout"), " ", view.badge("computed")), readout)));
  const legend = ["reads", "writes"].map((name) => el("span", {}, el("i", { class: `fa-swatch is-${name}` }), kv.t(`legend-${name}`)));
  stage.append(answer, live, figure, el("p", { class: "kv-note fa-legend", "aria-hidden": "true" }, legend), moved);
  // The lab further down has settings of the same names in the address.
  const menu = (name, list) => ({ name, key: `b_${name}`, kind: "select", label: kv.t(name), value: start[name], choices: list });
  const controls = kv.controls(panel, [
    menu("phase", ["prefill", "decode"].map((name) => [name, kv.t(`phase-${name}`)])),
    { name: "tokens", kind: "range", scale: "log2", label: kv.t("tokens"), min: 1, max: props.limits.tokens, value: start.tokens, unit: kv.t("unit-tokens") },
    { name: "heads", kind: "range", label: kv.t("heads"), min: 1, max: props.limits.heads, value: start.heads, exact: true },
    { name: "batch", kind: "range", scale: "log2", label: kv.t("batch"), min: 1, max: props.limits.batch, value: start.batch },
    menu("dtype", props.dtypes.map((item) => [item.name, kv.t("dtype-choice", item)])), menu("head_dim", props.headDims.map((n) => [n, String(n)])),
    menu("block_q", props.tiles.map((n) => [n, String(n)])),
  ], () => schedule());
  const flow = KV.flashFlow(figure, kv), count = (n) => n.toLocaleString("en-US"), bytes = (n) => kv.t(n < 1024n ? "bytes-few" : "bytes", { size: KV.bytes(Number(n)), n: count(n) });
  const cells = Object.fromEntries(props.outputs.map((name) => {
    const output = el("output", { class: "kv-num", "data-out": name });
    readout.append(el("div", {}, el("dt", {}, kv.t(`out-${name}`)), el("dd", {}, output)));
    return [name, output];
  }));
  const TENSORS = { "read-qk": ["Q", "K"], "write-s": ["S"], "read-s": ["S"], "write-p": ["P"], "read-pv": ["P", "V"], "write-o": ["O"], "read-q": ["Q"], "read-kv": ["K", "V"], "write-lse": ["LSE"] };
  // Hundredths, rounded half up.
  const times = (a, b) => { const n = (200n * a + b) / (2n * b); return `${count(n / 100n)}.${String(n % 100n).padStart(2, "0")}`; };

  let frame = 0, speak = 0;
  const draw = () => {
    frame = 0;
    if (!root.isConnected) return;
    const started = performance.now(), v = controls.values, prefill = v.phase === "prefill";
    const s = { q_len: prefill ? v.tokens : 1, kv_len: v.tokens, heads: v.heads, batch: v.batch, head_dim: v.head_dim, element_bytes: sizes[v.dtype], block_q: v.block_q };
    const head = math.head(s), all = math.scores(s), kept = math.output(s) + math.lse(s), naive = math.naive(s), flash = math.flash(s), moves = [math.moved(naive), math.moved(flash)];
    const shape = `${kv.number(s.q_len)} × ${kv.number(s.kv_len)}`;
    cells.head.textContent = kv.t("head-line", { shape, size: s.element_bytes, bytes: bytes(head) });
    cells.all.textContent = kv.t("all-line", { batch: s.batch, heads: s.heads, bytes: bytes(all) });
    cells.output.textContent = bytes(math.output(s));
    cells.lse.textContent = bytes(math.lse(s));
    cells.kept.textContent = bytes(kept);
    cells.ratio.textContent = kv.t("ratio", { times: times(all, kept) });
    cells.tile.textContent = bytes(math.tile(s));
    // In decode there is one Query, so every tile is that Query.
    controls.input("block_q").disabled = !prefill;
    cells.flops.textContent = kv.t("flops-line", { n: view.digits(Number(math.flops(s))) });
    const list = (found) => found.map(([name, n]) => ({ name, bytes: Number(n), write: name.startsWith("write"), tensors: TENSORS[name], words: KV.bytes(Number(n)) }));
    const words = kv.t(prefill ? "answer-prefill" : "answer-decode", { n: kv.number(v.tokens), heads: s.heads, batch: s.batch, head: KV.bytes(Number(head)), all: KV.bytes(Number(all)), kept: KV.bytes(Number(kept)) });
    flow.draw({ naive: list(naive), flash: list(flash), words: {
      memory: kv.t("memory"), memoryShort: kv.t("memory-short"), chip: kv.t("chip"), naive: kv.t("flow-naive", { bytes: KV.bytes(Number(moves[0])) }), flash: kv.t("flow-flash", { bytes: KV.bytes(Number(moves[1])) }),
      insideNaive: ["Q Kᵀ", "", "softmax", "", "P V", ""], insideFlash: ["", "S, P; m, l, u", "u / l", "m + ln l"],
    } });
    answer.textContent = words;
    moved.replaceChildren(kv.t(prefill ? "moved-prefill" : "moved-decode", { naive: KV.bytes(Number(moves[0])), flash: KV.bytes(Number(moves[1])), times: times(moves[0], moves[1]), tiles: kv.number(math.tiles(s)), tile: Math.min(s.block_q, s.q_len) }), " ", ...(moves[1] > moves[0] ? [kv.t("moved-more"), " "] : []), view.badge("computed"));
    clearTimeout(speak);
    speak = setTimeout(() => { live.textContent = words; flow.describe(kv.t("flow-figure", { naive: KV.bytes(Number(moves[0])), flash: KV.bytes(Number(moves[1])) })); }, 500);
    root.dataset.drawMs = (performance.now() - started).toFixed(2);
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  flow.describe(kv.t("flow-figure", { naive: "", flash: "" }));
  draw();
};
