// The names of requests and blocks, and what happened as sentences. Numbers come from the server; only words are made here.
KV.pagedAttentionWords = (kv) => {
  "use strict";
  // 0 A, 25 Z, 26 AA: requests are named in the order in which they were born.
  const name = (n) => (n < 26 ? "" : name(Math.floor(n / 26) - 1)) + String.fromCharCode(65 + (n % 26));
  const list = (items) => items.map(String).join(kv.t("comma"));
  const count = (key, n) => kv.t(n === 1 ? `${key}-one` : `${key}-many`, { n });

  const action = (item, born) => {
    if (!item) return kv.t("did-nothing");
    const [kind, ...numbers] = item;
    if (kind === "new") return kv.t("did-new", { name: name(born), prompt: count("tokens", numbers[0]) });
    if (kind === "fork") return kv.t("did-fork", { name: name(born), parent: name(numbers[0]) });
    if (kind === "step") return kv.t("did-step");
    return kv.t(`did-${kind}`, { name: name(numbers[0]), n: kind === "grow" ? count("tokens", numbers[1]) : "" });
  };
  const paged = ([kind, who, ...more]) => {
    const own = { name: name(who) };
    if (kind === "got") return kv.t(more[1].length === 1 ? "paged-got-one" : "paged-got", { ...own, blocks: list(more[1]) });
    if (kind === "more") return kv.t(more[0].length === 1 ? "paged-more-one" : "paged-more", { ...own, blocks: list(more[0]) });
    if (kind === "copy") return kv.t("paged-copy", { ...own, source: more[0], target: more[1] });
    if (kind === "share") return kv.t("paged-share", { ...own, parent: name(more[0]), blocks: list(more[1]), n: more[1].length });
    if (kind === "end" || kind === "stop") return kv.t(`paged-${kind}`, { ...own, n: count("blocks", more[0]) });
    return kv.t(`paged-${kind}`, own);
  };
  const reserved = ([kind, who, ...more]) => {
    const own = { name: name(who) };
    if (kind === "got") return kv.t("reserved-got", { ...own, first: more[1][0], last: more[1][1] });
    if (kind === "end" || kind === "stop") return kv.t(`reserved-${kind}`, { ...own, n: more[0] });
    return kv.t(`reserved-${kind}`, own);
  };
  const join = (sentences) => sentences.join(kv.t("join"));
  // Everybody who found no block, in one sentence at the end.
  const pagedEvents = (events) => {
    const full = events.filter(([kind]) => kind === "full");
    return [...events.filter(([kind]) => kind !== "full").map(paged), ...(full.length ? [kv.t("paged-full", { names: list(full.map(([, who]) => name(who))) })] : [])];
  };
  return {
    name, list, count,
    // What was done and what it did to the blocks.
    paged: (item, born, state) => join([action(item, born), ...(state.refused ? [kv.t(`refused-${state.refused}`)] : pagedEvents(state.paged.events))]),
    reserved: (state) => join(state.reserved.events.map(reserved)) || kv.t("reserved-nothing"),
  };
};
