// What the widgets of the page "FlashAttention" share: numbers as text, badges, small tables.
KV.flashView = (kv, props) => {
  "use strict";
  const { el } = kv, UP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const minus = (text) => text.replace("-", "−");
  // Four digits that count: "0.04076", "−∞", "1.11 × 10⁻¹⁶".
  const digits = (x) => {
    if (Number.isNaN(x)) return "NaN";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    if (Math.abs(x) >= 1e-3 && Math.abs(x) < 1e5) return minus(String(Number(x.toPrecision(4))));
    const [head, power] = x.toExponential(2).split("e");
    return `${minus(head)} × 10${[...power.replace("+", "")].map((c) => UP[c]).join("")}`;
  };
  const vector = (xs) => `(${xs.map(digits).join(", ")})`;
  const badge = (origin) => el("span", { class: `kv-badge kv-${origin}` },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badges[origin].mark), props.badges[origin].word);
  // A table whose rows are made anew: rows are [header, cell, ...].
  const table = (host, caption, head, name, origin) => {
    const words = kv.t(caption), body = el("tbody");
    host.append(el("p", { class: "kv-note" }, words, " ", badge(origin)),
      el("div", { class: "kv-table-wrap", tabindex: "0", role: "region", "aria-label": words },
        el("table", { class: "kv-table fa-table", "data-table": name }, el("thead", {}, el("tr", {}, head.map((key) => el("th", { scope: "col" }, kv.t(key))))), body)));
    return (rows) => body.replaceChildren(...rows.map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, first), cells.map((cell) => el("td", {}, cell)))));
  };
  return { digits, vector, badge, table };
};
