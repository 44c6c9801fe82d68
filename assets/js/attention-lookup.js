// One Query against all visible tokens: its q, every k with its score and weight, every v, and what comes out.
KV.attentionLookup = (root, kv, onKey) => {
  "use strict";
  const { el } = KV, draw = KV.attention, math = KV.attentionMath;
  const canvas = (name) => el("canvas", { class: "kv-attn-strip", role: "img", "aria-label": name });

  const asks = el("p", { class: "kv-attn-asks" }), query = canvas("Q");
  const body = el("tbody");
  const column = (key) => el("th", { scope: "col" }, kv.t(key));
  const table = el("table", { class: "kv-attn-table" }, el("caption", { class: "kv-sr" }, kv.t("table-name")),
    el("thead", {}, el("tr", {}, ["col-position", "col-token", "col-key", "col-score", "col-weight", "col-value"].map(column))), body);
  const scroll = el("div", { class: "kv-attn-scroll", tabindex: "0", role: "region", "aria-label": kv.t("table-name") }, table);
  const sum = el("p", { class: "kv-note kv-num" }), help = el("p", { class: "kv-note" });
  const output = canvas(kv.t("output-name"));
  root.append(
    el("div", { class: "kv-attn-top" }, el("span", { class: "kv-tensor kv-q", "aria-hidden": "true" }, "Q"), asks, query),
    scroll, sum,
    el("div", { class: "kv-attn-top" }, el("span", { class: "kv-tensor kv-attn-out", "aria-hidden": "true" }, "Σ w·V"), el("p", { class: "kv-attn-asks" }, kv.t("output-name")), output),
    help);

  let rows = [], limits = null;

  // A row a token; what depends on the Query is filled in by `show`.
  const build = (pieces, head) => {
    rows = pieces.map((piece, index) => {
      const k = canvas(kv.t("col-key")), v = canvas(kv.t("col-value"));
      const button = el("button", { type: "button", class: "kv-attn-pick", "aria-pressed": "false", onclick: () => onKey(index) }, draw.token(piece));
      const score = el("span", { class: "kv-num" }), weight = el("span", { class: "kv-num" });
      const up = el("i", {}), fill = el("i", {});
      const node = el("tr", {}, el("td", {}, String(index), index === 0 ? el("span", { title: kv.t("sink-mark") }, " ⚓") : null),
        el("th", { scope: "row" }, button), el("td", {}, k),
        el("td", {}, el("span", { class: "kv-attn-score" }, up), score), el("td", {}, el("span", { class: "kv-attn-bar" }, fill), weight), el("td", {}, v));
      return { node, k, v, button, score, weight, up, fill };
    });
    body.replaceChildren(...rows.map((row) => row.node));
    limits = { q: draw.largest(head.q), k: draw.largest(head.k), v: draw.largest(head.v), output: draw.largest(head.output) };
    const words = Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, value.toFixed(2)]));
    help.textContent = kv.t("strip-help", { dim: head.dim, ...words });
  };

  const strips = (head, { token, dim }, result) => {
    draw.strip(query, math.row(head.q, token, head.dim), { colour: "--q", limit: limits.q, mark: dim });
    draw.strip(output, result.output, { colour: "--v", limit: limits.output, mark: dim });
    rows.forEach((row, index) => {
      if (index > token) return;
      draw.strip(row.k, math.row(head.k, index, head.dim), { colour: "--k", limit: limits.k, mark: dim });
      draw.strip(row.v, math.row(head.v, index, head.dim), { colour: "--v", limit: limits.v, mark: dim });
    });
  };

  const show = (pieces, head, { token, key, dim }, result) => {
    asks.textContent = kv.t("asks", { token: draw.quoted(pieces[token]), position: token });
    const widest = Math.max(1e-9, draw.largest(result.scores));
    rows.forEach((row, index) => {
      row.node.hidden = index > token;
      if (index > token) return;
      const score = head.scores[token * head.length + index], weight = head.weights[token * head.length + index];
      row.score.textContent = draw.signed(score, 2);
      row.weight.textContent = draw.share(weight);
      row.up.style.width = `${(50 * Math.abs(score)) / widest}%`;
      row.up.style.insetInlineStart = score < 0 ? `${50 - (50 * Math.abs(score)) / widest}%` : "50%";
      row.fill.style.width = `${100 * weight}%`;
      row.v.style.opacity = String(0.4 + 0.6 * Math.sqrt(weight));
      row.button.setAttribute("aria-pressed", String(index === key));
      row.node.classList.toggle("is-key", index === key);
      row.node.classList.toggle("is-query", index === token);
    });
    let total = 0;
    for (let index = 0; index <= token; index += 1) total += head.weights[token * head.length + index];
    const masked = pieces.length - 1 - token;
    sum.dataset.sum = String(total);
    sum.textContent = `${kv.t("sum", { sum: total.toFixed(4) })} · ${kv.t(masked === 0 ? "masked-none" : masked === 1 ? "masked-one" : "masked-other", { count: masked })}`;
    strips(head, { token, dim }, result);
    reveal(rows[key].node);
  };
  // The chosen Key comes into view inside the table; the page itself stays where it is.
  const reveal = (row) => {
    const top = table.tHead.offsetHeight, low = row.offsetTop - top, high = row.offsetTop + row.offsetHeight + 4 - scroll.clientHeight;
    if (scroll.scrollTop > low) scroll.scrollTop = low;
    else if (scroll.scrollTop < high) scroll.scrollTop = high;
  };
  return { build, show };
};
