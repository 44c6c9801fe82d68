// Models: the catalogue as a table that is searched, filtered and sorted here, with a column for any length the reader chooses.
KV.widgets.models = async (root, props, kv) => {
  "use strict";
  await Promise.all([kv.load("cache-size-math"), kv.load("models-row")]);
  const { el } = kv, ALL = "all", size = KV.cacheSize;
  const badge = (kind) => el("span", { class: `kv-badge kv-${kind}`, title: props.badges[kind].meaning },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badges[kind].mark), props.badges[kind].word);
  const lengthName = (n) => (n >= 2 ** 20 ? `${n / 2 ** 20}M` : `${n / 1024}K`);

  // A column: what a row is sorted by, and which way a first press sorts.
  const rows = props.rows.map((row) => KV.modelsRow(kv, row, props));
  const columns = [
    { name: "title", value: ({ row }) => row.title.toLowerCase(), up: true }, { name: "attention", value: ({ row }) => row.attention.toLowerCase(), up: true },
    { name: "at", value: (item) => item.at }, { name: "slope", value: ({ row }) => row.slope.value }, { name: "constant", value: ({ row }) => row.constant.value },
    ...props.lengths.map((tokens, i) => ({ name: `total-${i}`, label: kv.t("total", { n: lengthName(tokens) }), value: ({ row }) => row.totals[i] })),
    { name: "weights", value: ({ row }) => row.weights ?? -1 }, { name: "date", value: ({ row }) => row.date }, { name: "checked", value: ({ row }) => (row.is_verified ? 1 : 0) },
  ];
  const TEXT = new Set(["title", "attention", "date", "checked"]);
  const byName = Object.fromEntries(columns.map((column) => [column.name, column]));

  const counted = (values) => [...new Set(values)].sort((a, b) => a.localeCompare(b, "en"));
  const kinds = Object.entries(Object.assign({}, ...props.rows.map((row) => row.kinds)));
  const menu = (name, choices) => ({ name, kind: "select", label: kv.t(name), value: ALL, choices: [[ALL, kv.t("all")], ...choices] });
  const declaration = [
    { name: "q", kind: "text", label: kv.t("q"), value: "", maxLength: 80 },
    menu("kind", kinds),
    menu("maker", counted(props.rows.map((row) => row.organisation)).map((name) => [name, name])),
    menu("year", counted(props.rows.map((row) => row.date.slice(0, 4))).map((year) => [year, year])),
    { name: "tokens", kind: "range", scale: "log2", perOctave: 2, label: kv.t("tokens"), min: props.limits[0], max: props.limits[1], value: props.start, format: size.tokens },
    { name: "checked", kind: "check", label: kv.t("only-checked"), value: false },
  ];

  const panel = root.appendChild(el("div", { class: "kv-card ml-panel" }));
  const controls = kv.controls(panel, declaration, (values, name) => (name === "tokens" ? resize() : show()));
  const status = panel.appendChild(el("p", { class: "kv-note", role: "status" }));
  const head = el("tr"), body = el("tbody");
  const note = el("p", { class: "kv-note ml-note" }, kv.t("note"), " ", badge("computed"), " ", kv.t("note-quoted"), " ", badge("quoted"));
  root.append(el("div", { class: "kv-table-wrap ml-wrap", tabindex: 0, role: "region", "aria-label": kv.t("table") },
    el("table", { class: "kv-table ml-table" }, el("caption", { class: "kv-sr" }, kv.t("table")), el("thead", {}, head), body)), note);

  // "slope" sorts down first, "-slope" in the address is the other way round.
  const asked = kv.state.get("sort") || "", named = asked.replace(/^-/, "");
  let sort = Object.hasOwn(byName, named) ? named : "date", turned = Object.hasOwn(byName, named) && asked.startsWith("-");
  const up = () => Boolean(byName[sort].up) !== turned;
  const heads = columns.map((column) => {
    const button = el("button", { type: "button", onclick: () => press(column.name) }, column.label || kv.t(`column-${column.name}`), el("span", { class: "ml-arrow", "aria-hidden": "true" }));
    const cell = el("th", { scope: "col", "data-column": column.name, class: TEXT.has(column.name) ? "is-text" : null }, button);
    head.append(cell);
    return { column, cell, arrow: button.lastChild };
  });
  const press = (name) => {
    turned = sort === name ? !turned : false;
    sort = name;
    kv.state.set({ sort: sort === "date" && !turned ? null : `${turned ? "-" : ""}${sort}` });
    order();
  };
  const order = () => {
    for (const { column, cell, arrow } of heads) {
      const here = column.name === sort;
      if (here) cell.setAttribute("aria-sort", up() ? "ascending" : "descending"); else cell.removeAttribute("aria-sort");
      arrow.textContent = here ? (up() ? " ↑" : " ↓") : "";
    }
    const value = byName[sort].value, way = up() ? 1 : -1;
    // Equals keep the catalogue's order.
    const sorted = [...rows].sort((a, b) => { const x = value(a), y = value(b); return x < y ? -way : x > y ? way : a.place - b.place; });
    body.replaceChildren(...sorted.filter((item) => item.shown).flatMap((item) => (item.open ? [item.node, item.detail] : [item.node])));
  };

  const show = () => {
    const { q, kind, maker, year, checked } = controls.values, words = q.trim().toLowerCase().split(/\s+/);
    for (const item of rows) {
      const { row } = item;
      item.shown = words.every((word) => item.words.includes(word)) && (kind === ALL || Object.hasOwn(row.kinds, kind))
        && (maker === ALL || row.organisation === maker) && (year === ALL || row.date.startsWith(year)) && (!checked || row.is_verified);
    }
    const shown = rows.filter((item) => item.shown).length;
    status.textContent = shown ? kv.t("shown", { n: shown, all: rows.length }) : kv.t("shown-none");
    resize();
  };
  let frame = 0;
  const resize = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      const { tokens } = controls.values;
      for (const item of rows) item.measure(tokens);
      const most = Math.max(1, ...rows.filter((item) => item.shown).map((item) => item.at));
      for (const item of rows) item.bar.style.width = `${(100 * item.at) / most}%`;
      order();
      root.dataset.renders = Number(root.dataset.renders || 0) + 1;
    });
  };
  rows.forEach((item, i) => { item.place = i; item.onToggle = order; });
  show();
};
