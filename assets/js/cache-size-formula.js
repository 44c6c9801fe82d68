// The formula of the page "Cache size", each symbol with its value and tied to its control. Like layers of full attention
// have a product, 2 · L · H · D · T · B · S; any other model B · (slope · T + constant − what is not there yet).
KV.cacheSizeFormula = (root, kv, controls, badge) => {
  "use strict";
  const { el } = kv, size = KV.cacheSize;
  const letterOf = (letter) => el("i", {}, letter, letter === "H" ? el("sub", {}, "kv") : null);
  const dot = (text = "·") => el("span", { class: "cs-dot", "aria-hidden": "true" }, text);

  // A symbol that leads to its control and lights up with it.
  const tied = (values, letter, name) => {
    const node = el("button", { type: "button", class: "cs-symbol", "data-for": name, onclick: () => controls.input(name).focus() },
      letterOf(letter), (values[name] = el("span", { class: "cs-value kv-num" })));
    const control = controls.input(name).closest(".kv-control");
    const light = (on) => [node, control].forEach((item) => item.classList.toggle("is-lit", on));
    for (const item of [node, control]) {
      for (const event of ["pointerenter", "focusin"]) item.addEventListener(event, () => light(true));
      for (const event of ["pointerleave", "focusout"]) item.addEventListener(event, () => light(false));
    }
    return node;
  };
  const said = (values, letter, name, text) => {
    values[name].textContent = text;
    values[name].parentElement.setAttribute("aria-label", kv.t("symbol", { letter, label: kv.t(name), value: text }));
  };
  const box = (...parts) => root.appendChild(el("div", { class: "cs-formula", role: "group", "aria-label": kv.t("formula") },
    el("span", { class: "cs-bytes" }, kv.t("bytes"), " ="), ...parts, badge("computed")));
  const fixed = (letter, value, title) => el("span", { class: "cs-symbol is-fixed", title }, letter, value);

  const PRODUCT = [["L", "layers"], ["H", "kv_heads"], ["D", "head_dim"], ["T", "tokens"], ["B", "batch"], ["S", "dtype"]];
  const product = () => {
    const values = {}, result = el("output", { class: "cs-result kv-num" });
    const node = box(fixed(el("b", {}, "2"), el("span", { class: "cs-value" }, kv.t("two"))),
      PRODUCT.flatMap(([letter, name]) => [dot(), tied(values, letter, name)]), dot("="), result);
    return {
      node,
      draw: (now) => {
        for (const [letter, name] of PRODUCT) {
          said(values, letter, name, name === "dtype" ? `${now.form.packing[0] / 8} B` : KV.number({ ...now.shape, tokens: now.tokens, batch: now.batch }[name]));
        }
        result.textContent = `${size.count(now.total)} B`;
      },
    };
  };

  const sum = () => {
    const values = {}, result = el("output", { class: "cs-result kv-num" });
    const cell = (name) => (values[name] = el("span", { class: "cs-value kv-num" }));
    const rest = fixed(el("i", {}, "r"), cell("rest"), kv.t("rest")), sign = dot("−");
    const node = box(tied(values, "B", "batch"), dot("· ("), fixed(el("i", {}, "m"), cell("slope"), kv.t("out-per-token")), dot(), tied(values, "T", "tokens"),
      dot("+"), fixed(el("i", {}, "c"), cell("constant"), kv.t("out-constant")), sign, rest, dot(") ="), result);
    return {
      node,
      draw: (now) => {
        said(values, "B", "batch", KV.number(now.batch));
        said(values, "T", "tokens", KV.number(now.tokens));
        values.slope.textContent = size.exact(now.slope);
        values.constant.textContent = size.exact(now.constant);
        // What windows still lack and what is not a whole row; a format that keeps its latest tokens unpacked adds instead.
        const lacking = size.minus(size.sum([size.times(now.slope, now.tokens), now.constant]), { n: now.each, d: 1n });
        values.rest.textContent = size.exact(lacking.n < 0n ? { n: -lacking.n, d: lacking.d } : lacking);
        sign.textContent = lacking.n < 0n ? "+" : "−";
        rest.hidden = sign.hidden = lacking.n === 0n;
        result.textContent = `${size.count(now.total)} B`;
      },
    };
  };

  const forms = [product(), sum()], note = root.appendChild(el("p", { class: "kv-note cs-formula-note" }, kv.t("formula-note")));
  return (now) => {
    const chosen = forms[now.shape && now.form.plain ? 0 : 1];
    forms.forEach((form) => { form.node.hidden = form !== chosen; });
    note.hidden = chosen === forms[0];
    chosen.draw(now);
  };
};
