// What the sections of the page "Worked example" are drawn with: badges, lists of numbers, bars, tables, and the settings as numbers.
KV.workedView = (kv, props) => {
  "use strict";
  const { el } = kv;
  const byName = (list, name) => list.find((item) => item.name === name);
  const badge = (kind) => el("span", { class: `kv-badge kv-${kind}`, title: props.badges[kind].meaning },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.badges[kind].mark), props.badges[kind].word);

  // A list of labelled numbers; returns a function that fills them in: show({total: "64.00 GiB"}).
  const outputs = (root, origins) => {
    const cells = {};
    root.append(el("dl", { class: "we-outputs" }, Object.entries(origins).map(([name, origin]) => el("div", {},
      el("dt", {}, kv.t(`out-${name}`), " ", badge(origin)), el("dd", {}, (cells[name] = el("output", { class: "kv-num", "data-out": name })))))));
    return (texts) => { for (const [name, text] of Object.entries(texts)) cells[name].textContent = text; };
  };

  // A figure: what a screen reader gets as one picture, its caption below it.
  const figure = (root, ...children) => {
    const picture = el("div", { class: "we-picture", role: "img" }, ...children), caption = el("figcaption", { class: "we-answer" });
    root.append(el("figure", {}, picture, caption));
    return (label, answer) => { picture.setAttribute("aria-label", label); caption.textContent = answer; };
  };
  const share = (part, whole) => (whole > 0n ? Number((part * 1000000n) / whole) / 10000 : 0);
  // One piece of a bar. kinds: weights, k, v, reserve, free; letters name the kind, the colour alone does not.
  const piece = (kind, letter) => el("span", { class: `we-piece is-${kind}` }, el("b", { "aria-hidden": "true" }, letter));
  const key = (kinds) => el("p", { class: "kv-note we-key", "aria-hidden": "true" },
    kinds.map(([kind, letter]) => el("span", {}, piece(kind, letter), kv.t(`key-${kind}`))));

  // A table whose body is filled again and again; the first cell of a row names it.
  const table = (root, caption, heads, origin) => {
    const body = el("tbody");
    root.append(el("p", { class: "kv-note" }, caption, " ", badge(origin)),
      el("div", { class: "kv-table-wrap", tabindex: "0", role: "region", "aria-label": caption },
        el("table", { class: "kv-table we-table" }, el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))), body)));
    return (rows, current) => body.replaceChildren(...rows.map(([first, ...others], i) =>
      el("tr", { class: i === current ? "is-here" : null, "aria-current": i === current ? "true" : null },
        el("th", { scope: "row" }, first), others.map((text) => el("td", {}, text)))));
  };

  // The controls' values as what the arithmetic takes.
  const settings = (values) => ({
    model: props.model, tokens: values.tokens, requests: values.requests, element_bytes: byName(props.dtypes, values.cache).bytes,
    bits: Number(values.weights), tp: Number(values.tp), bandwidth: BigInt(Math.round(values.bandwidth)) * 10n ** 9n,
    memory: BigInt(byName(props.devices, values.gpu).memory_bytes), reserve: BigInt(Math.round(values.reserve * 2)) * 2n ** 29n,
    link: BigInt(Math.round(values.link * 10)) * 10n ** 8n, device: byName(props.devices, values.gpu), mover: byName(props.movers, values.mover),
    dtype: byName(props.dtypes, values.cache),
  });
  const requests = (n) => (Number(n) === 1 ? kv.t("one-request") : kv.t("n-requests", { n: KV.cacheSize.count(n) }));
  const tokens = (n) => (n === 1 ? kv.t("one-token") : kv.t("n-tokens", { n: KV.number(n) }));
  const join = (...words) => words.filter(Boolean).join(kv.t("join"));
  const beyond = (values) => (values.tokens > props.model.max_positions
    ? kv.t("beyond", { tokens: KV.number(values.tokens), stated: KV.number(props.model.max_positions), model: props.model.title }) : "");
  return { badge, outputs, figure, share, piece, key, table, settings, requests, tokens, join, beyond };
};
// The scripts that every section needs, in order.
KV.workedReady = async (kv) => {
  await kv.load("cache-size-math");
  await Promise.all(["worked-example-math", "worked-example-case"].map(kv.load));
};
