// Two maps to look round in: every weight of the head, and the first token's share in every head.
KV.attentionMaps = (root, kv, badge, onPick) => {
  "use strict";
  const { el } = KV, draw = KV.attention;
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  const figure = (key, onclick) => {
    const canvas = el("canvas", { class: "kv-attn-map", role: "img", onclick });
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
  });
  const sinks = figure("map-sinks", (event) => {
    const [head, layer] = draw.cellAt(sinks.canvas, event, now.reading.layers);
    if (head >= 0 && head < now.reading.heads && layer >= 0 && layer < now.reading.layers) onPick({ layer, head });
  });

  const showWeights = () => {
    const { head, reading, chosen } = now, { length } = head;
    const at = (row, column) => (column > row ? null : head.weights[row * length + column]);
    draw.grid(weights.canvas, {
      rows: length, columns: length, value: at, picked: (cell) => [0, chosen.token * cell, (chosen.token + 1) * cell, cell],
    });
    let best = 0;
    for (let key = 1; key <= chosen.token; key += 1) if (at(chosen.token, key) > at(chosen.token, best)) best = key;
    weights.canvas.setAttribute("aria-label", kv.t("map-weights-alt", {
      tokens: length, row: chosen.token, weight: at(chosen.token, best).toFixed(3), token: draw.quoted(reading.tokens[best]),
    }));
  };

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const showSinks = () => {
    const { reading, chosen } = now, { layers, heads } = reading, half = Math.floor(layers / 2);
    const share = (head, layer) => reading.sinks[layer * heads + head];
    draw.grid(sinks.canvas, {
      rows: heads, columns: layers, value: share, picked: (cell) => [chosen.layer * cell, chosen.head * cell, cell, cell],
    });
    const lower = percent(mean(reading.sinks.subarray(0, half * heads))), upper = percent(mean(reading.sinks.subarray(half * heads)));
    const places = { layers, heads, mid: half - 1, next: half, last: layers - 1, lower, upper };
    sinks.canvas.setAttribute("aria-label", kv.t("map-sinks-alt", places));
    sinks.words.textContent = `${kv.t("map-here", { layer: chosen.layer, head: chosen.head, share: percent(share(chosen.head, chosen.layer)) })}. ${kv.t("map-average", {
      ...places, count: reading.sinks.filter((value) => value > 0.5).length, all: layers * heads,
    })}`;
  };
  return {
    show: (reading, head, chosen) => { now = { reading, head, chosen }; showWeights(); showSinks(); },
    redraw: () => { if (now) { showWeights(); showSinks(); } },
  };
};
