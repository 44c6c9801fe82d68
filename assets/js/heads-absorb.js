// Matrix absorption with the reader's own small numbers: one head, Key width 2, latent width 3, three cached tokens.
// Whole numbers and quarter turns, so both ways are equal to the digit and not only nearly.
KV.widgets["heads-absorb"] = (root, props, kv) => {
  "use strict";
  const { el } = kv, LIMIT = 9, TOKENS = 3, KEY = "absorb";
  const sizes = { q: [1, 2], w: [2, 3], c: [TOKENS, 3] };
  const start = { q: [2, 1], w: [1, 0, 2, -1, 3, 1], c: [1, 2, 0, 3, -1, 1, 0, 1, -2] };
  const names = Object.keys(sizes), values = structuredClone(start), fields = { q: [], w: [], c: [] };

  // The address holds all fifteen numbers, or nothing while they are the first ones.
  const saved = (KV.state.get(KEY) || "").split(",").map(Number), flat = (from) => names.flatMap((name) => from[name]);
  if (saved.length === flat(start).length && saved.every((n) => Number.isInteger(n) && Math.abs(n) <= LIMIT)) {
    let at = 0;
    for (const name of names) values[name] = saved.slice(at, (at += start[name].length));
  }
  const field = (name, at, row, column) => {
    const input = el("input", { type: "number", min: -LIMIT, max: LIMIT, step: 1, value: values[name][at], inputmode: "numeric", "data-cell": `${name}${at}`,
      "aria-label": kv.t(`cell-${name}`, { row: row + 1, column: column + 1 }),
      oninput: () => {
        const n = input.value.trim() === "" ? NaN : Number(input.value), good = Number.isInteger(n) && Math.abs(n) <= LIMIT;
        input.toggleAttribute("data-wrong", !good);
        if (good) { values[name][at] = n; draw(); }
      },
      onblur: () => { input.removeAttribute("data-wrong"); input.value = values[name][at]; } });
    fields[name].push(input);
    return input;
  };
  const grid = (name) => Array.from({ length: sizes[name][0] }, (_, row) => el("span", { class: "ab-row" },
    Array.from({ length: sizes[name][1] }, (_, column) => field(name, row * sizes[name][1] + column, row, column))));
  const matrix = (name, symbol) => el("div", { class: "ab-matrix" }, el("span", { class: "ab-symbol" }, symbol), el("span", { class: "ab-cells" }, grid(name)));
  const w = () => el("span", {}, "W", el("sub", {}, "UK"));

  const controls = kv.controls(root, [{ name: "rotate", kind: "check", label: kv.t("rotate"), value: false }], () => draw());
  const HEAD = ["token", "latent", "key", "score", "moved", "score2"];
  // "expanded: q · k": the word before the colon has no room on a phone.
  const title = (name) => {
    const [, word, sum] = kv.t(`head-${name}`).match(/^(.+[:：] ?)?(.+)$/);
    return word ? [el("span", { class: "ab-word" }, word), sum] : [sum];
  };
  const TURNED = ["key", "score", "moved"], heads = HEAD.map((name) => el("th", { scope: "col" }, title(name)));
  const body = el("tbody"), rows = grid("c").map((cells, j) => {
    const outs = HEAD.slice(2).map((name) => el("td", { class: "kv-num", "data-out": `${name}${j}` }));
    body.append(el("tr", {}, el("th", { scope: "row" }, String(j + 1)), el("td", {}, cells), ...outs));
    return outs;
  });
  const verdict = el("p", { class: "ab-verdict", role: "status" }), work = el("p", { class: "kv-note" });
  const reset = el("button", { type: "button", class: "kv-button is-ghost", onclick: () => {
    for (const name of names) { values[name] = [...start[name]]; fields[name].forEach((input, at) => { input.value = values[name][at]; }); }
    draw();
  } }, kv.t("reset"));
  root.append(el("div", { class: "ab-inputs" }, matrix("q", el("i", {}, "q")), matrix("w", w()), reset),
    el("div", { class: "kv-table-wrap", tabindex: "0", role: "region", "aria-label": kv.t("table") }, el("table", { class: "kv-table ab-table" },
      el("thead", {}, el("tr", {}, heads)), body)), verdict, work);
  root.classList.add("kv-card");

  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  // A quarter turn for each position: the rotation that RoPE would make, with an angle that keeps whole numbers whole.
  const turn = ([x, y], quarters) => [[x, y], [-y, x], [-x, -y], [y, -x]][((quarters % 4) + 4) % 4];
  const text = (vector) => `(${vector.map((n) => String(n).replace("-", "−")).join(", ")})`;

  // Both ways for every cached token j; the Query stands at position 4, after tokens 1 to 3: four quarters leave it as it is, so
  // the Keys that are shown are the turned ones, and a reader can check each score with the q of the inputs.
  const both = (rotate) => Array.from({ length: TOKENS }, (_, j) => {
    const c = values.c.slice(3 * j, 3 * j + 3), key = turn([dot(values.w.slice(0, 3), c), dot(values.w.slice(3), c)], rotate ? j + 1 : 0);
    const distance = rotate ? TOKENS - j : 0, q = turn(values.q, distance);
    const moved = [0, 1, 2].map((i) => values.w[i] * q[0] + values.w[3 + i] * q[1]);
    return { key, moved, expanded: dot(turn(values.q, rotate ? TOKENS + 1 : 0), key), absorbed: dot(moved, c) };
  });
  const draw = () => {
    const { rotate } = controls.values, found = both(rotate);
    for (const name of TURNED) heads[HEAD.indexOf(name)].replaceChildren(...title(`${name}${rotate ? "-rotated" : ""}`));
    found.forEach((item, j) => {
      const shown = [text(item.key), String(item.expanded).replace("-", "−"), text(item.moved), String(item.absorbed).replace("-", "−")];
      rows[j].forEach((cell, i) => { cell.textContent = shown[i]; });
      rows[j][3].classList.toggle("is-unequal", item.expanded !== item.absorbed);
    });
    const equal = found.every((item) => item.expanded === item.absorbed), different = new Set(found.map((item) => text(item.moved))).size;
    verdict.textContent = kv.t(!equal ? "unequal" : !rotate ? "verdict" : different > 1 ? "verdict-rotated" : "verdict-rotated-same", { n: different });
    // Multiplications: 6 for a product with W, 2 or 3 for a dot product.
    work.textContent = kv.t("work", { expand: TOKENS * 6 + TOKENS * 2, absorb: (rotate ? TOKENS : 1) * 6 + TOKENS * 3 });
    KV.state.set({ [KEY]: flat(values).join() === flat(start).join() ? null : flat(values).join() });
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  draw();
};
