// Requests with their logical blocks, and the pool of physical ones. Nodes are kept from state to state, so that the focus stays.
KV.pagedAttentionPool = (left, right, kv, props, words, act, refocus) => {
  "use strict";
  const { el, svg } = kv, size = props.blockSize, cards = new Map();
  const list = left.appendChild(el("ol", { class: "pa-cards" })), none = left.appendChild(el("p", { class: "kv-note pa-none" }, kv.t("no-requests")));
  const grid = el("ol", { class: "pa-pool", "aria-label": kv.t("pool-name", { n: props.numBlocks, size }) });
  const arrows = svg("svg", { class: "pa-arrows", "aria-hidden": "true" });
  const where = el("p", { class: "kv-note pa-where" });
  right.append(el("div", { class: "pa-pool-box" }, grid, arrows), where);
  let state = null, pointed = [];

  const bar = (filled) => el("span", { class: "pa-fill", "aria-hidden": "true" }, el("i", { style: `width:${(100 * filled) / size}%` }));
  const fill = (node, filled) => { node.firstChild.style.width = `${(100 * filled) / size}%`; };

  const cells = Array.from({ length: props.numBlocks }, (_, id) => {
    const owner = el("span", { class: "pa-owner" }), ref = el("span", { class: "pa-ref" }), note = el("span", { class: "pa-copied" }), meter = bar(0);
    const node = el("li", { class: "pa-block", "data-block": id, onmouseenter: () => point(holders(id)), onmouseleave: () => point([]) },
      el("span", { class: "pa-id" }, String(id)), owner, ref, meter, note);
    grid.append(node);
    return { node, owner, ref, note, meter };
  });
  // All (request, logical block) pairs that lie in a physical block.
  const holders = (id) => Object.entries(state?.paged.tables ?? {}).flatMap(([seq, table]) => table.flatMap((block, i) => (block === id ? [[seq, i]] : [])));
  const filledIn = (seq, i) => Math.min(size, state.paged.tokens[seq] - i * size);

  const place = (seq, i) => {
    const id = state.paged.tables[seq][i], filled = filledIn(seq, i);
    return kv.t("where", { name: `${words.name(Number(seq))}${i}`, from: i * size, to: i * size + filled - 1, id, first: id * size, last: id * size + filled - 1 });
  };

  // Marks logical blocks and the physical ones that they stand for.
  function point(pairs) {
    pointed = pairs;
    const ids = new Set(pairs.map(([seq, i]) => state.paged.tables[seq]?.[i]));
    cells.forEach((cell, id) => cell.node.classList.toggle("is-pointed", ids.has(id)));
    where.textContent = pairs.map(([seq, i]) => place(seq, i)).join(kv.t("join")) || kv.t("where-hint");
    for (const [seq, card] of cards) {
      card.blocks.forEach((block, i) => block.node.classList.toggle("is-pointed", pairs.some(([other, at]) => other === seq && at === i)));
    }
  }

  const button = (key, seq, action) => el("button", { type: "button", class: "pa-small", "data-act": key, title: kv.t(`card-${key}-help`),
    "aria-label": kv.t(`card-${key}-for`, { name: words.name(Number(seq)) }), onclick: () => act(action) }, kv.t(`card-${key}`));
  const makeCard = (seq) => {
    const n = Number(seq), title = el("span", { class: "pa-says" }), chips = el("span", { class: "pa-chips" }), table = el("ol", { class: "pa-table", "aria-label": kv.t("table-name", { name: words.name(n) }) });
    const buttons = [button("one", seq, ["grow", n, 1]), button("many", seq, ["grow", n, size]), button("fork", seq, ["fork", n]), button("finish", seq, ["finish", n])];
    const node = el("li", { class: "pa-card", "data-request": seq }, el("div", { class: "pa-card-top" },
      el("span", { class: "pa-name" }, words.name(n)), title, chips), el("div", { class: "pa-card-row" }, table, el("span", { class: "pa-acts" }, buttons)));
    list.append(node);
    return { node, title, chips, table, buttons, blocks: [] };
  };
  const makeBlock = (seq, i) => {
    const target = el("span", { class: "pa-target kv-num" }), meter = bar(0), pair = [[seq, i]];
    const inner = el("button", { type: "button", class: "pa-logical", onfocus: () => point(pair), onblur: () => point([]), onmouseenter: () => point(pair), onmouseleave: () => point([]) },
      el("span", { class: "pa-logical-name" }, `${words.name(Number(seq))}${i}`), meter, target);
    return { node: el("li", {}, inner), inner, target, meter };
  };

  const drawCard = (seq, card) => {
    const [limit, final] = state.requests[seq], have = state.paged.tokens[seq], table = state.paged.tables[seq] ?? [];
    const waits = state.paged.waiting.some(([other]) => String(other) === seq), there = state.reserved.tokens[seq];
    const waitsThere = state.reserved.waiting.some(([other]) => String(other) === seq);
    // Where the other scheme stands, if it stands elsewhere.
    const chip = waitsThere ? (waits ? null : "chip-waits") : there === undefined ? (waits || have !== undefined ? "chip-ended" : null) : there === have ? null : "chip-has";
    card.title.textContent = have === undefined ? kv.t(waits ? "card-waits" : "card-gone", { final }) : kv.t("card-runs", { have, final, limit });
    card.chips.replaceChildren(...(chip ? [el("span", { class: "pa-chip" }, kv.t(chip, { have: there }))] : []));
    card.buttons[2].hidden = have === undefined;
    card.buttons[0].hidden = card.buttons[1].hidden = have === undefined && there === undefined;
    while (card.blocks.length > table.length) card.blocks.pop().node.remove();
    table.forEach((id, i) => {
      if (!card.blocks[i]) { card.blocks[i] = makeBlock(seq, i); card.table.append(card.blocks[i].node); }
      const block = card.blocks[i], filled = filledIn(seq, i), shared = state.paged.refs[id] > 1;
      block.target.textContent = `→ ${id}`;
      fill(block.meter, filled);
      block.inner.classList.toggle("is-shared", shared);
      block.inner.setAttribute("aria-label", kv.t(shared ? "logical-shared" : "logical", {
        name: words.name(Number(seq)), i, from: i * size, to: i * size + filled - 1, id, filled, size, refs: state.paged.refs[id] }));
    });
  };
  const drawCell = (cell, id) => {
    const here = holders(id), refs = state.paged.refs[id], copy = state.paged.copies.find((pair) => pair[1] === id), source = state.paged.copies.some((pair) => pair[0] === id);
    const filled = here.length ? Math.max(...here.map(([seq, i]) => filledIn(seq, i))) : 0, names = here.map(([seq, i]) => `${words.name(Number(seq))}${i}`);
    cell.node.className = `pa-block ${refs > 1 ? "is-shared" : refs ? "is-used" : "is-free"}${copy ? " is-copy" : ""}${source ? " is-source" : ""}`;
    cell.node.dataset.owners = names.join(" ");
    cell.owner.textContent = names.length > 2 ? `${names[0]} +${names.length - 1}` : names.join(" ");
    cell.ref.textContent = refs > 1 ? `×${refs}` : "";
    cell.note.textContent = copy ? kv.t("copied", { source: copy[0] }) : "";
    fill(cell.meter, filled);
    cell.node.setAttribute("aria-label", kv.t(refs ? "physical" : "physical-free", { id, owners: words.list(names), filled, size, refs }));
    cell.node.setAttribute("role", "listitem");
  };
  // From the block that was copied to its copy.
  const drawArrows = () => {
    const box = grid.getBoundingClientRect();
    arrows.setAttribute("viewBox", `0 0 ${box.width || 1} ${box.height || 1}`);
    arrows.replaceChildren(...(state?.paged.copies ?? []).map(([source, target]) => {
      const [a, b] = [source, target].map((id) => cells[id].node.getBoundingClientRect());
      const middle = (one) => [one.left + one.width / 2 - box.left, one.top + one.height / 2 - box.top], [ax, ay] = middle(a), [bx, by] = middle(b);
      const away = Math.min(0.3, 20 / Math.hypot(bx - ax, by - ay)), [x1, y1, x2, y2] = [ax + (bx - ax) * away, ay + (by - ay) * away, bx - (bx - ax) * away, by - (by - ay) * away];
      const bend = Math.hypot(x2 - x1, y2 - y1) * 0.18, angle = Math.atan2(y2 - y1, x2 - x1), cx = (x1 + x2) / 2 - bend * Math.sin(angle), cy = (y1 + y2) / 2 + bend * Math.cos(angle);
      const end = Math.atan2(y2 - cy, x2 - cx), tip = (turn) => `${(x2 - 11 * Math.cos(end + turn)).toFixed(1)} ${(y2 - 11 * Math.sin(end + turn)).toFixed(1)}`;
      return svg("path", { class: "pa-arrow", d: `M${x1.toFixed(1)} ${y1.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}M${tip(0.45)}L${x2.toFixed(1)} ${y2.toFixed(1)}L${tip(-0.45)}` });
    }));
  };
  new ResizeObserver(drawArrows).observe(grid);

  return (next) => {
    const focused = left.contains(document.activeElement) ? document.activeElement : null;
    state = next;
    const alive = Object.keys(state.requests);
    for (const [seq, card] of cards) if (!alive.includes(seq)) { card.node.remove(); cards.delete(seq); }
    for (const seq of alive) {
      if (!cards.has(seq)) cards.set(seq, makeCard(seq));
      const card = cards.get(seq);
      drawCard(seq, card);
    }
    // An earlier state shown again may bring a request back between two others.
    alive.forEach((seq, i) => { if (list.children[i] !== cards.get(seq).node) list.insertBefore(cards.get(seq).node, list.children[i] ?? null); });
    none.hidden = alive.length > 0;
    cells.forEach(drawCell);
    point(pointed.filter(([seq, i]) => state.paged.tables[seq]?.[i] !== undefined));
    drawArrows();
    // What had the focus may have ended.
    if (focused && (!focused.isConnected || focused.hidden)) refocus();
  };
};
