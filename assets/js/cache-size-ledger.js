// The ledger of the page "Cache size": what each kind of layer keeps and reads, own or shared, and what is taken for granted.
// KV.cacheSizeLedger(root, kv, badge) gives draw(now); rows are made when the layers change, numbers at every draw.
KV.cacheSizeLedger = (root, kv, badge) => {
  "use strict";
  const { el } = kv, size = KV.cacheSize, MOST = 40;
  // A letter and a colour for each kind of layer, the same in the figure.
  const MARKS = {
    full_attention: ["F", 1], sliding_window: ["W", 2], chunked_attention: ["K", 4], cross_attention: ["X", 4], latent: ["L", 3],
    latent_indexed: ["I", 3], compressed: ["Z", 5], recurrent_state: ["R", 6], shared: ["–", 6], none: ["–", 6],
  };
  const mark = (kind) => MARKS[kind] || ["?", 6];
  const COLUMNS = ["kind", "layers", "owner", "slope", "constant", "now", "one-gpu", "read", "share"];
  const TEXT = new Set(["kind", "layers", "owner"]);

  const caption = el("p", { class: "kv-note" });
  const heads = COLUMNS.map((name) => el("th", { scope: "col", class: TEXT.has(name) ? "is-text" : null, "data-column": name }, kv.t(`ledger-${name}`)));
  const body = el("tbody"), foot = el("tfoot"), assumed = el("ul", { class: "cs-assumed" });
  root.append(el("h2", { class: "cs-title" }, kv.t("ledger-title")), el("div", { class: "cs-caption" }, caption, badge("computed")),
    el("div", { class: "kv-table-wrap cs-ledger", tabindex: 0, role: "region", "aria-label": kv.t("ledger-title") },
      el("table", { class: "kv-table" }, el("thead", {}, el("tr", {}, heads)), body, foot)),
    el("h3", { class: "cs-title" }, kv.t("assumed-title")), assumed);

  // Places in the model: runs, or every n-th, and no more than a few.
  const places = (layers) => {
    const runs = [];
    for (const layer of layers) {
      const last = runs[runs.length - 1];
      if (last && layer === last[1] + 1) last[1] = layer; else runs.push([layer, layer]);
    }
    const step = layers[1] - layers[0];
    if (runs.length > 3 && layers.every((layer, i) => layer === layers[0] + i * step)) return `${layers[0]}, ${layers[1]}, …, ${layers[layers.length - 1]}`;
    const shown = runs.slice(0, 3).map(([first, end]) => (first === end ? `${first}` : `${first}–${end}`)).join(", ");
    return runs.length > 3 ? `${shown}, …` : shown;
  };
  const swatch = (kind) => el("span", { class: `cs-kind cs-kind-${mark(kind)[1]}`, "aria-hidden": "true" }, mark(kind)[0]);
  const owner = (row) => (row.draft ? kv.t("ledger-draft") : row.owner === undefined ? kv.t("ledger-own") : kv.t("ledger-shared", { layer: row.owner }));
  const cell = (name, tag = "td") => el(tag, { class: TEXT.has(name) ? "is-text" : "kv-num", "data-column": name });

  const fill = (found, texts) => { for (const [name, text] of Object.entries(texts)) found[name].textContent = text; };

  // What does not depend on the length, and what does.
  const lasting = (kept) => {
    const constant = size.constant(kept);
    return { slope: size.exact(size.slope(kept)), constant: constant.d === 1n && constant.n >= 0n ? size.binary(constant.n) : size.exact(constant) };
  };
  const sums = Object.fromEntries(COLUMNS.slice(1).map((name) => [name, cell(name)]));
  let cells = [], made = null;
  const make = (now) => {
    made = now.rows;
    cells = now.rows.slice(0, MOST).map((row) => {
      const found = Object.fromEntries(COLUMNS.slice(1).map((name) => [name, cell(name)]));
      found.layers.textContent = `${KV.number(row.layers.length)} × (${places(row.layers)})`;
      found.owner.append(owner(row), ...(row.formats.length ? [el("span", { class: "kv-note" }, row.formats.join(" + "))] : []));
      fill(found, lasting(row.kept));
      const head = el("th", { scope: "row", class: "is-text" }, swatch(row.kind), " ", el("b", {}, row.title), row.shape ? el("span", { class: "kv-note" }, " ", row.shape) : null);
      return { row, found, node: el("tr", {}, head, ...Object.values(found)) };
    });
    const left = now.rows.length - cells.length;
    body.replaceChildren(...cells.map((item) => item.node), ...(left > 0 ? [el("tr", {}, el("td", { colspan: COLUMNS.length, class: "is-text" }, kv.t("ledger-more", { n: KV.number(left) })))] : []));
    sums.layers.textContent = KV.number(new Set(now.rows.flatMap((row) => row.layers)).size);
    fill(sums, lasting(now.whole));
    assumed.replaceChildren(...now.assumed.map((line) => el("li", {}, line)));
  };

  const amounts = (kept, read, one, now) => ({
    now: size.binary(now.here(kept)), "one-gpu": size.binary(now.here(one)), read: size.binary(now.here(read)), share: now.total ? `${KV.number(Number((now.here(kept) * 2000n + now.total) / (2n * now.total)) / 10, 1)}%` : "–",
  });
  foot.append(el("tr", {}, el("th", { scope: "row", class: "is-text" }, kv.t("ledger-total")), ...Object.values(sums)));
  return {
    mark,
    draw: (now) => {
      if (made !== now.rows) make(now);
      caption.textContent = kv.t(now.ranks > 1 ? "ledger-caption-ranks" : "ledger-caption", {
        model: now.title || kv.t("own-title"), tokens: size.count(now.tokens), batch: size.count(now.batch), format: now.form.name, ranks: now.ranks,
      });
      root.classList.toggle("is-one-gpu", now.ranks === 1);
      for (const { row, found } of cells) fill(found, amounts(row.kept, row.read, row.one, now));
      fill(sums, amounts(now.whole, now.reading, now.part, now));
    },
  };
};
