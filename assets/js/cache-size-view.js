// The words and numbers beside the figure of the page "Cache size": the formula, the outputs, the answer.
KV.cacheSizeView = (kv, badges) => {
  "use strict";
  const { el } = kv, size = KV.cacheSize;
  const badge = (kind) => el("span", { class: `kv-badge kv-${kind}`, title: badges[kind].meaning },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, badges[kind].mark), badges[kind].word);
  const both = (n) => kv.t("both", { binary: size.binary(n), decimal: size.decimal(n) });

  // bytes = 2 · L · H_kv · D · T · B · S: each symbol shows its value and lights up the control that it belongs to.
  const formula = (root, controls) => {
    const parts = [["L", "layers"], ["H", "kv_heads"], ["D", "head_dim"], ["T", "tokens"], ["B", "batch"], ["S", "dtype"]];
    const values = {}, result = el("output", { class: "cs-result kv-num" });
    const symbol = ([letter, name]) => {
      const node = el("button", { type: "button", class: "cs-symbol", "data-for": name, onclick: () => controls.input(name).focus() },
        el("i", {}, letter, letter === "H" ? el("sub", {}, "kv") : null), (values[name] = el("span", { class: "cs-value kv-num" })));
      const control = controls.input(name).closest(".kv-control");
      const light = (on) => [node, control].forEach((item) => item.classList.toggle("is-lit", on));
      for (const item of [node, control]) {
        for (const event of ["pointerenter", "focusin"]) item.addEventListener(event, () => light(true));
        for (const event of ["pointerleave", "focusout"]) item.addEventListener(event, () => light(false));
      }
      return [el("span", { class: "cs-dot", "aria-hidden": "true" }, "·"), node];
    };
    root.append(el("div", { class: "cs-formula", role: "group", "aria-label": kv.t("formula") },
      el("span", { class: "cs-bytes" }, kv.t("bytes"), " ="), el("span", { class: "cs-symbol is-fixed" }, el("b", {}, "2"), el("span", { class: "cs-value" }, kv.t("two"))),
      parts.flatMap(symbol), el("span", { class: "cs-dot" }, "="), result, badge("computed")));
    return (now) => {
      for (const [, name] of parts) values[name].textContent = name === "dtype" ? `${now.settings.element_bytes} B` : KV.number(now.settings[name]);
      for (const [letter, name] of parts) values[name].parentElement.setAttribute("aria-label", kv.t("symbol", { letter, label: kv.t(name), value: values[name].textContent }));
      result.textContent = `${size.count(now.total)} B`;
    };
  };

  const OUTPUTS = { "per-token": "computed", total: "computed", read: "computed", weights: "quoted", memory: "quoted", crossing: "computed", fits: "computed" };
  const outputs = (root) => {
    const cells = {};
    root.append(el("dl", { class: "cs-outputs" }, Object.entries(OUTPUTS).map(([name, origin]) => el("div", {},
      el("dt", {}, kv.t(`out-${name}`), " ", badge(origin)), el("dd", {}, (cells[name] = el("output", { class: "kv-num", "data-out": name })))))));
    return (now) => {
      const tokens = (n) => (n === null ? kv.t("never") : kv.t("n-tokens", { n: size.count(n) }));
      cells["per-token"].textContent = `${size.binary(now.perToken)} = ${size.count(now.perToken)} B`;
      cells.total.textContent = both(now.total);
      cells.read.textContent = both(now.total);
      cells.weights.textContent = both(now.weights);
      cells.memory.textContent = now.device ? both(now.memory) : kv.t("none");
      cells.crossing.textContent = tokens(now.crossing);
      cells.fits.textContent = now.device ? (now.room < 0n ? kv.t("weights-too-large") : tokens(now.fits)) : kv.t("none");
    };
  };

  const share = (part, whole) => KV.number(Number((part * 10000n) / whole) / 10000, 2);
  const answer = (now) => {
    const words = [now.crossing === null ? kv.t("answer-never") : kv.t(now.settings.batch > 1 ? "answer-batch" : "answer", { n: size.count(now.crossing), batch: size.count(now.settings.batch) })];
    if (now.crossing !== null && now.stated) {
      words.push(kv.t(now.crossing > BigInt(now.stated) ? "answer-beyond" : "answer-within", { stated: size.count(now.stated), model: now.model.title }));
    }
    words.push(kv.t("answer-here", { tokens: size.count(now.settings.tokens), total: size.binary(now.total), share: share(now.total, now.weights) }));
    if (now.device && now.room < 0n) words.push(kv.t("answer-no-room", { gpu: now.device.title }));
    else if (now.device) words.push(kv.t("answer-fits", { gpu: now.device.title, n: size.count(now.fits) }));
    return words.join(kv.t("join"));
  };
  const caveats = (now) => [
    now.edited ? kv.t("edited", { model: now.model.title }) : "",
    now.stated && now.settings.tokens > now.stated ? kv.t("beyond", { stated: size.count(now.stated), model: now.model.title }) : "",
    now.dtype.note,
  ].filter(Boolean).join(kv.t("join"));
  // Every device of the catalogue is of one maker; inside the figure its model alone is enough.
  const shortened = (device) => device.title.replace(/^NVIDIA (GeForce )?/, "");
  const lines = (now) => [
    { kind: "weights", bytes: Number(now.weights), label: kv.t("line-weights", { size: size.binary(now.weights) }) },
    ...(now.device ? [{ kind: "memory", bytes: Number(now.memory), label: kv.t("line-memory", { gpu: shortened(now.device), size: size.binary(now.memory) }) }] : []),
    ...(now.device && now.room > 0n ? [{ kind: "room", bytes: Number(now.room), label: kv.t("line-room", { size: size.binary(now.room) }) }] : []),
  ];
  const sources = (now) => [kv.t("source-model", { ...now.model }), now.device ? kv.t("source-gpu", { ...now.device }) : ""].filter(Boolean).join(kv.t("join"));
  return { formula, outputs, answer, caveats, lines, sources };
};
