// Two maps to look round in: every weight of the head, and the first token's share in every head.
KV.attentionMaps = (root, kv, badge, onPick) => {
  "use strict";
  const { el } = KV, draw = KV.attention;
  const percent = (share) => `${(100 * share).toFixed(0)}\u00a0%`;
  const figure = (key, onclick, onpointermove) => {
    const canvas = el("canvas", { class: "kv-attn-map", role: "img", "aria-label": kv.t(key), onclick, onpointermove, onpointerleave: () => rest() });
    const words = el("p", { class: "kv-note kv-num" });
    const title = el("p", { class: "kv-attn-map-title" }, kv.t(key), " ");
    title.append(badge.cloneNode(true));
    root.append(el("figure", {}, title, canvas, words, el("figcaption", {}, kv.t(`${key}-help`))));
    return { canvas, words };
  };
  let now = null;
  const weights = figure("map-weights", (event) => {
    const [row] = draw.cellAt(weights.canvas, event, now.head.length);
    if (row >= 0 && row < now.head.length) onPick({ token: row });
  }, (event) => {
    const [row, column] = draw.cellAt(weights.canvas, event, now.head.length);
    if (row >= 0 && row < now.head.length && column >= 0 && column <= row) say(row, column);
  });
  const sinks = figure("map-sinks", (event) => {
    const [head, layer] = draw.cellAt(sinks.canvas, event, now.reading.layers);
    if (head >= 0 && head < now.reading.heads && layer >= 0 && layer < now.reading.layers) onPick({ layer, head });
  }, (event) => {
    const [head, layer] = draw.cellAt(sinks.canvas, event, now.reading.layers);
    if (head >= 0 && head < now.reading.heads && layer >= 0 && layer < now.reading.layers) sayShare(layer, head);
  });

  const at = (row, column) => (column > row ? null : now.head.weights[row * now.head.length + column]);
  const say = (row, column) => {
    const { tokens } = now.reading;
    weights.words.textContent = kv.t("map-weight", { query: draw.quoted(tokens[row]), key: draw.quoted(tokens[column]), weight: draw.share(at(row, column)) });
  };
  const share = (head, layer) => now.reading.sinks[layer * now.reading.heads + head];
  let average = "";
  const sayShare = (layer, head) => {
    sinks.words.textContent = `${kv.t("map-here", { layer, head, share: percent(share(head, layer)) })} ${average}`;
  };
  // What the lines say while no pointer is on a map.
  function rest() {
    say(now.chosen.token, best());
    sayShare(now.chosen.layer, now.chosen.head);
  }
  const best = () => {
    let most = 0;
    for (let key = 1; key <= now.chosen.token; key += 1) if (at(now.chosen.token, key) > at(now.chosen.token, most)) most = key;
    return most;
  };

  const showWeights = () => {
    const { head, reading, chosen } = now, { length } = head, most = best();
    draw.grid(weights.canvas, {
      rows: length, columns: length, value: at, picked: (cell) => [0, chosen.token * cell, (chosen.token + 1) * cell, cell],
    });
    weights.canvas.setAttribute("aria-label", kv.t("map-weights-alt", {
      tokens: length, row: chosen.token, weight: draw.share(at(chosen.token, most)), token: draw.quoted(reading.tokens[most]),
    }));
  };

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const showSinks = () => {
    const { reading, chosen } = now, { layers, heads } = reading, half = Math.floor(layers / 2);
    draw.grid(sinks.canvas, {
      rows: heads, columns: layers, value: share, picked: (cell) => [chosen.layer * cell, chosen.head * cell, cell, cell],
    });
    const lower = percent(mean(reading.sinks.subarray(0, half * heads))), upper = percent(mean(reading.sinks.subarray(half * heads)));
    const places = { layers, heads, mid: half - 1, next: half, last: layers - 1, lower, upper };
    sinks.canvas.setAttribute("aria-label", kv.t("map-sinks-alt", places));
    average = kv.t("map-average", { ...places, count: reading.sinks.filter((value) => value > 0.5).length, all: layers * heads });
  };
  return {
    show: (reading, head, chosen) => { now = { reading, head, chosen }; showWeights(); showSinks(); rest(); },
  };
};
