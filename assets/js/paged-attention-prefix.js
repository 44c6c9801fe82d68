// A prefix that several requests have in common: which blocks they share, and what that saves.
KV.widgets["paged-attention-prefix"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["math", "badge"].map((part) => KV.load(`paged-attention-${part}`)));
  const { el } = kv, math = KV.pagedAttention, SHOWN = 4, MOST_BLOCKS = 40;
  const stage = el("div"), panel = el("div", { class: "pa-panel" }), rows = el("div", { class: "pa-rows", role: "img" }), answer = el("p", {}), readout = el("dl", { class: "pa-readout" });
  const cells = Object.fromEntries(["apart", "together", "saved", "prefill"].map((name) => {
    const output = el("output", { class: "kv-num", "data-out": name });
    readout.append(el("div", {}, el("dt", {}, kv.t(`out-${name}`)), el("dd", {}, output)));
    return [name, output];
  }));
  const badge = KV.pagedAttentionBadge(kv, props.computed), key = (kind, text) => el("li", {}, el("span", { class: `kv-blk is-${kind}` }), kv.t(text));
  stage.append(rows, el("ul", { class: "pa-legend pa-keys", "aria-hidden": "true" }, key("shared", "prefix-shared"), key("used", "prefix-own"), el("li", {}, kv.t("prefix-numbers"))), answer);
  root.append(el("div", { class: "kv-card pa-sizes" }, stage, panel, el("div", {}, readout, el("p", {}, badge))));
  const controls = kv.controls(panel, [
    { name: "requests", kind: "range", label: kv.t("requests"), min: 2, max: 32, value: 2 },
    { name: "prefix", kind: "range", label: kv.t("prefix"), unit: kv.t("unit"), min: 0, max: 512, value: 72 },
    { name: "tail", kind: "range", label: kv.t("tail"), unit: kv.t("unit"), min: 1, max: 128, value: 30 },
    { name: "share", kind: "range", label: kv.t("prefix-size"), unit: kv.t("unit"), min: 1, max: 128, value: 16, scale: "log2" },
  ], () => draw());

  const draw = () => {
    const v = controls.values, found = math.sharing(v.requests, v.prefix, v.tail, v.share), each = Math.ceil((v.prefix + v.tail) / v.share);
    const text = kv.t(found.full === 0 ? "prefix-say-none" : found.rest ? "prefix-say" : "prefix-say-even", { full: found.full, rest: found.rest, requests: v.requests });
    // Ids in the order in which a fresh pool gives them out: the first request takes all of its own, each other one its tail.
    const own = each - found.full, id = (request, i) => (i < found.full ? i : found.full + request * own + (i - found.full));
    rows.replaceChildren(...Array.from({ length: Math.min(SHOWN, v.requests) }, (_, request) => el("div", { class: "pa-row" },
      el("span", { class: "pa-row-name" }, String.fromCharCode(65 + request)),
      Array.from({ length: Math.min(MOST_BLOCKS, each) }, (_, i) => el("span", { class: `kv-blk ${i < found.full ? "is-shared" : "is-used"}` }, String(id(request, i)))),
      each > MOST_BLOCKS ? `+ ${each - MOST_BLOCKS}` : null)));
    if (v.requests > SHOWN) rows.append(el("p", { class: "kv-note" }, kv.t("more-requests", { n: v.requests - SHOWN })));
    rows.setAttribute("aria-label", kv.t("prefix-alt", { text }));
    answer.textContent = text;
    cells.apart.textContent = KV.number(found.apart);
    cells.together.textContent = KV.number(found.together);
    cells.saved.textContent = kv.t("saved", { n: KV.number(found.saved), share: `${((100 * found.saved) / found.apart).toFixed(1)} %` });
    cells.prefill.textContent = kv.t("prefill", { n: KV.number(found.prefill) });
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  draw();
};
