// The result half of a lab panel: figure, table, summary, provenance, downloads. `show` takes a run's state (pages/_lab_job.py).
KV.labResult = (lab, kv) => {
  "use strict";
  const { el } = KV, { t } = kv;
  const badge = (column) => el("span", { class: `kv-badge kv-${column.origin}`, title: column.meaning },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, column.mark), column.word);
  const heading = (column) => el("th", { scope: "col" },
    el("span", {}, column.title), column.unit ? el("span", { class: "lab-unit" }, column.unit) : null, badge(column));

  const empty = el("p", { class: "kv-note lab-empty" }, t("empty"));
  const old = el("p", { class: "kv-note lab-old", hidden: true }, t("previous"));
  const host = el("div", { class: "kv-plot lab-plot", "data-renders": "0" });
  const figcaption = el("figcaption");
  const figure = el("figure", { class: "kv-figure lab-figure", role: "group", hidden: true }, host, figcaption);
  const caption = el("caption"), body = el("tbody");
  const table = el("div", { class: "kv-table-wrap lab-table", tabindex: "0", role: "region", "aria-label": t("result"), hidden: true },
    el("table", { class: "kv-table" }, caption, el("thead", {}, el("tr", {}, lab.columns.map(heading))), body));
  const answer = el("div", { class: "lab-answer" });
  const provenance = el("p", { class: "kv-note lab-provenance" }), facts = el("dl", { class: "lab-facts" });
  const sources = el("div", { hidden: true }, el("h4", { class: "lab-small" }, t("provenance")), provenance,
    el("details", { class: "kv-note" }, el("summary", {}, t("provenance.all")), facts));
  const save = (kind, type) => el("button", { type: "button", class: "kv-button is-ghost lab-save", "data-kind": kind,
    onclick: () => download(kind, type) }, t(kind));
  const files = el("div", { class: "lab-files", hidden: true }, save("json", "application/json"), save("csv", "text/csv"));
  const element = el("div", { class: "lab-result", "aria-busy": "false" }, el("h4", { class: "kv-sr" }, t("result")),
    empty, old, figure, table, answer, sources, files);
  let contents = {};

  // The Record exactly as the server wrote it; made into a file in the page, so there is no address and nothing to keep.
  function download(kind, type) {
    const url = URL.createObjectURL(new Blob([contents[kind]], { type: `${type};charset=utf-8` }));
    el("a", { href: url, download: `${lab.lab}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
  const numeric = (text) => /^[-\d]/.test(text) || text === "–";
  // A cell is [text, spread]: the spread stands small below its number.
  const cell = (tag, attributes, [text, spread]) => el(tag, { ...attributes, class: numeric(text) ? "is-num" : null },
    text, spread ? el("small", { class: "lab-spread", title: t("spread") }, spread) : null);
  const row = (cells) => el("tr", {}, cells.map((value, i) => (i === 0 ? cell("th", { scope: "row" }, value) : cell("td", {}, value))));

  function show(state) {
    empty.hidden = true;
    old.hidden = true;
    element.classList.remove("is-old");
    table.hidden = false;
    const n = state.rows.length;
    caption.replaceChildren(el("span", { class: "kv-sr" }, `${lab.title} `), t(n === 1 ? "rows.one" : "rows.many", { n }));
    body.replaceChildren(...state.rows.map(row));
    figure.hidden = !state.figure;
    if (state.figure) draw(state.figure);
    const over = state.json !== undefined;
    sources.hidden = files.hidden = !over;
    answer.replaceChildren();
    if (over) end_(state);
  }
  // Rows may come faster than a slow device can draw: then only the newest figure is drawn.
  let next = null, drawing = false;
  async function draw(value) {
    next = value;
    if (drawing) return;
    drawing = true;
    while (next && element.isConnected) {
      const now = next;
      next = null;
      await drawn(now);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    drawing = false;
  }
  function drawn(value) {
    const spread = value.data.some((trace) => trace.error_y);
    const what = value.data.map((trace) => trace.name).join(", "), by = value.layout.xaxis.title.text;
    const label = t("figure", { title: lab.title, what, by });
    figcaption.textContent = t(spread ? "figure-spread" : "figure-text");
    figure.setAttribute("aria-label", label);
    return KV.plot(host, value, { height: 300, label });
  }
  function end_(state) {
    contents = { json: state.json, csv: state.csv };
    if (!state.complete) answer.append(el("p", { class: "kv-note" }, t("partial")));
    if (state.answer) answer.append(el("p", {}, el("b", {}, t("summary")), " ", state.answer));
    else if (state.summary.length) answer.append(el("dl", { class: "lab-facts" }, pairs(state.summary)));
    provenance.textContent = state.provenance;
    facts.replaceChildren(...pairs(state.facts));
  }
  const pairs = (list) => list.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);

  return {
    element, show,
    // A new run: what is shown belongs to the last one until the first row comes.
    begin: () => {
      const has = !table.hidden;
      old.hidden = !has;
      element.classList.toggle("is-old", has);
    },
    end: () => {
      old.hidden = true;
      element.classList.remove("is-old");
    },
  };
};
