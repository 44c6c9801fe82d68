// A widget that uses everything that the frame offers; the browser tests drive it.
KV.widgets["stand-in"] = function (root, props, kv) {
  const hostile = root.appendChild(KV.el("p", { class: "hostile", title: props.hostile }, props.hostile));
  const out = KV.el("output", { class: "kv-num", id: "size" });
  const c = kv.controls(root, [
    { name: "tokens", kind: "range", label: kv.t("tokens"), unit: kv.t("unit"), min: 1, max: 131072, value: 4096, scale: "log2", help: kv.t("help") },
    { name: "batch", kind: "number", label: kv.t("batch"), min: 1, max: 512, value: 1 },
    { name: "dtype", kind: "select", label: kv.t("dtype"), value: 2, choices: [[2, "bf16"], [1, "int8"]] },
    { name: "note", kind: "text", label: kv.t("note"), value: "", maxLength: 40 },
    { name: "weights", kind: "check", label: kv.t("weights"), value: true },
  ], draw);
  root.append(KV.el("p", {}, kv.t("size"), " ", out));
  function draw(v) {
    out.textContent = KV.bytes(v.tokens * v.batch * v.dtype * props.perToken);
    hostile.dataset.note = v.note;
  }
  draw(c.values);
  const cells = KV.svg("svg", { viewBox: "0 0 240 40", width: "100%", role: "img", "aria-label": kv.t("cells") });
  const boxes = Array.from({ length: 6 }, (_, i) => cells.appendChild(KV.svg("rect", { x: i * 40 + 4, y: 4, width: 32, height: 32, rx: 4, stroke: "var(--block-edge)" })));
  root.append(cells);
  kv.player(root, {
    length: 6, label: kv.t("cells"), key: "step", interval: 60,
    draw: (i) => boxes.forEach((box, n) => box.setAttribute("fill", n <= i ? "var(--k)" : "none")),
    describe: (i) => kv.t("step", { n: i + 1 }),
  });
  kv.onProps((next) => { hostile.textContent = next.hostile; });
};
