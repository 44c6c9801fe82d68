// One model of the page "Models": its row, the line of details below it, and its size at a length.
// KV.modelsRow(kv, row, props) -> { row, node, detail, bar, words, at, open, measure(tokens) }.
KV.modelsRow = (kv, row, props) => {
  "use strict";
  const { el } = kv, size = KV.cacheSize, pieces = row.keep.map((piece) => ({ ...piece, bytes: BigInt(piece.bytes) }));
  const bar = el("span", { class: "ml-bar", "aria-hidden": "true" }), at = el("span", { class: "kv-num" });
  const num = (name, ...parts) => el("td", { class: "kv-num", "data-column": name }, ...parts);
  const words = (name, ...parts) => el("td", { class: "is-text", "data-column": name }, ...parts);
  const beyond = (tokens) => row.stated !== null && tokens > row.stated;
  const total = (name, bytes, tokens) => {
    const cell = num(name, KV.bytes(bytes));
    if (beyond(tokens)) { cell.classList.add("is-beyond"); cell.append(el("span", { class: "kv-sr" }, ` ${kv.t("beyond")}`)); }
    return cell;
  };
  const billions = (n) => KV.number(n / 1e9, n < 1e10 ? 2 : 0);

  const id = kv.unique(), mark = row.is_verified ? kv.t("checked-yes") : kv.t("checked-no");
  const toggle = el("button", {
    type: "button", class: "ml-more", "aria-expanded": "false", "aria-controls": id, "aria-label": kv.t("more", { title: row.title, mark }),
    onclick: () => {
      item.open = !item.open;
      toggle.setAttribute("aria-expanded", String(item.open));
      item.onToggle();
      toggle.focus();
    },
  }, el("span", { "aria-hidden": "true", class: row.is_verified ? "ml-yes" : "ml-no" }, row.is_verified ? "✓" : "○"), ` ${mark}`);

  const atCell = num("at", at, bar);
  const node = el("tr", { "data-name": row.name },
    el("th", { scope: "row" }, el("a", { href: `${props.size_page}?model=${encodeURIComponent(row.name)}` }, row.title), el("span", { class: "kv-note" }, row.organisation)),
    words("attention", row.attention), atCell, num("slope", row.slope.text), num("constant", row.constant.text),
    ...props.lengths.map((tokens, i) => total(`total-${i}`, row.totals[i], tokens)),
    num("weights", row.weights === null ? kv.t("unknown") : billions(row.weights)), words("date", row.date), words("checked", toggle));

  const line = (name, ...parts) => [el("dt", {}, kv.t(`detail-${name}`)), el("dd", {}, ...parts)];
  const printed = (value) => el("p", {}, kv.t("printed", { text: value.text, source: value.source }),
    value.assumption ? kv.t("printed-if", { text: value.assumption }) : "", value.switches.length ? kv.t("printed-switch", { names: value.switches.join(", ") }) : "");
  const detail = el("tr", { class: "ml-detail", id }, el("td", { colspan: 8 + props.lengths.length }, el("dl", {},
    ...line("source", kv.t("source", { source: row.source, date: row.date })), ...line("checked", row.verified),
    ...line("weights", row.weights === null ? kv.t("unknown") : kv.t("weights-16", { n: KV.number(row.weights), size: KV.bytes(2 * row.weights) }) + (row.active ? kv.t("active", { n: row.active }) : "")),
    ...line("context", row.stated === null ? kv.t("none-stated") : size.tokens(row.stated), row.listed ? kv.t("listed", { n: row.listed }) : ""),
    ...line("constant", row.settled ? kv.t("settled", { n: KV.number(row.settled) }) : kv.t("settled-always")),
    ...(row.printed.length ? line("printed", ...row.printed.map(printed)) : []),
    ...(row.assumed.length ? line("assumed", el("ul", {}, row.assumed.map((text) => el("li", {}, text)))) : []),
    ...line("command", el("code", {}, `python -m explorer estimate ${row.name} --tokens 131072`)))));

  const item = {
    row, node, detail, bar, open: false, shown: true, at: 0, onToggle: () => {},
    words: [row.name, row.title, row.organisation, row.attention, row.date, ...Object.values(row.kinds)].join(" ").toLowerCase(),
    measure: (tokens) => {
      const bytes = size.total(pieces, tokens);
      item.at = Number(bytes);
      at.textContent = size.binary(bytes);
      atCell.classList.toggle("is-beyond", beyond(tokens));
    },
  };
  return item;
};
