// Home: the KV cache of one sequence for MHA, GQA, MQA and the reader's own choice, against the weights' line.
KV.widgets["home"] = (root, props, kv) => {
  "use strict";
  // The full width of a bar is the largest cache that the controls can reach, so that bars move and the line stays.
  const bytes = (heads, tokens) => 2 * props.layers * heads * props.head_dim * tokens * props.dtype_bytes;
  const widest = bytes(Math.max(...props.kv_heads), props.max_tokens);
  const percent = (n) => `${(100 * n) / widest}%`;

  const card = root.appendChild(kv.el("div", { class: "kv-card home-bars" }));
  // The slider walks the head counts that 32 Query heads can be grouped into; the address holds the count itself.
  const usual = props.kv_heads.indexOf(props.rows.gqa), asked = props.kv_heads.indexOf(Number(kv.state.get("kv_heads")));
  const headsText = (heads) => kv.t(heads === 1 ? "row-head" : "row-heads", { heads });
  const controls = kv.controls(card, [
    { name: "choice", key: false, kind: "range", label: kv.t("kv-heads"), format: (at) => headsText(props.kv_heads[at]),
      min: 0, max: props.kv_heads.length - 1, value: asked < 0 ? usual : asked },
    { name: "tokens", kind: "range", label: kv.t("context"), unit: kv.t("unit-tokens"),
      min: 1024, max: props.max_tokens, step: 1024, value: props.max_tokens },
  ], (values) => { kv.state.set({ kv_heads: values.choice === usual ? null : props.kv_heads[values.choice] }); draw(); });

  const rowOf = (key) => {
    const fill = kv.el("div", { class: "home-fill" });
    const line = kv.el("div", { class: "home-line", style: `left:${percent(props.weight_bytes)}` });
    const heads = kv.el("span", { class: "home-heads" });
    const size = kv.el("span", { class: "kv-num home-size" });
    const node = kv.el("li", { class: `home-row is-${key}` },
      kv.el("span", { class: "home-name" }, kv.el("b", {}, kv.t(`row-${key}`)), " ", heads), size,
      kv.el("div", { class: "home-track", "aria-hidden": "true" }, fill, line));
    return { node, fill, heads, size };
  };
  const rows = Object.fromEntries(["mha", "gqa", "mqa", "yours"].map((key) => [key, rowOf(key)]));
  const lineLabel = kv.el("p", { class: "home-line-label", "aria-hidden": "true" },
    kv.el("span", { style: `left:${percent(props.weight_bytes)}` }, kv.t("weights", { gib: kv.bytes(props.weight_bytes) })));
  const formula = kv.el("span", { class: "kv-num" });
  const badge = kv.el("span", { class: "kv-badge kv-computed" },
    kv.el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badge.mark), props.badge.word);
  const verdict = kv.el("p", { class: "home-verdict", role: "status" });
  card.append(lineLabel, kv.el("ul", { class: "home-rows", "aria-label": kv.t("bars-label") },
    Object.values(rows).map((row) => row.node)), verdict, kv.el("p", { class: "kv-note" }, kv.t("formula-label")),
    kv.el("p", { class: "home-formula" }, formula, " ", badge),
    kv.el("p", { class: "kv-note" }, kv.t("weights-note", { model: props.model, gib: kv.bytes(props.weight_bytes),
      gb: kv.decimalBytes(props.weight_bytes), params: kv.number(props.weight_params) })));

  function draw() {
    const { choice, tokens } = controls.values, own = props.kv_heads[choice];
    for (const [key, row] of Object.entries(rows)) {
      const heads = key === "yours" ? own : props.rows[key];
      const size = bytes(heads, tokens);
      row.node.dataset.bytes = size;
      row.node.classList.toggle("is-over", size > props.weight_bytes);
      row.fill.style.width = percent(size);
      row.heads.textContent = headsText(heads);
      row.size.textContent = kv.bytes(size);
    }
    const size = bytes(own, tokens);
    formula.textContent = `2 · ${props.layers} · ${own} · ${props.head_dim} · ${kv.number(tokens)} · ${props.dtype_bytes} B = `
      + `${kv.number(size)} B = ${kv.bytes(size)} (${kv.decimalBytes(size)})`;
    verdict.textContent = kv.t(size > props.weight_bytes ? "verdict-over" : "verdict-under", { heads: own,
      tokens: kv.number(tokens), gib: kv.bytes(size), ratio: kv.number(size / props.weight_bytes, 3) });
  }
  draw();
};
