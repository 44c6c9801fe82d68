// The names of requests and blocks, and what happened as sentences. Numbers come from the server; only words are made here.
KV.pagedAttentionWords = (kv) => {
  "use strict";
  // 0 A, 25 Z, 26 AA: requests are named in the order in which they were born.
  const name = (n) => (n < 26 ? "" : name(Math.floor(n / 26) - 1)) + String.fromCharCode(65 + (n % 26));
  const list = (items) => items.map(String).join(kv.t("comma"));
  const count = (key, n) => kv.t(n === 1 ? `${key}-one` : `${key}-many`, { n });

  // `now` and `before` are states. A request may get fewer tokens than were asked for: it stops at its end, and here or there it may wait.
  const grown = (who, wanted, now, before) => {
    const [here, there] = ["paged", "reserved"].map((scheme) => now[scheme].generated - before[scheme].generated);
    return kv.t(here ? "did-grow" : there ? "did-grow-there" : "did-grow-none", { name: name(who), n: count("tokens", here || there || wanted) });
  };
  const action = (item, born, now, before) => {
    if (!item) return kv.t("did-nothing");
    const [kind, ...numbers] = item;
    if (kind === "new") return kv.t("did-new", { name: name(born), prompt: count("tokens", numbers[0]) });
    if (kind === "fork") return kv.t("did-fork", { name: name(born), parent: name(numbers[0]) });
    if (kind === "grow") return grown(...numbers, now, before);
    return kv.t(`did-${kind}`, kind === "step" ? {} : { name: name(numbers[0]) });
  };
  // Only the first in line waits for room; the others wait for the one before them, even where there is room for them.
  const waits = (scheme, who, line) => {
    const at = line.findIndex(([seq]) => seq === who);
    return at < 1 ? kv.t(`${scheme}-wait`, { name: name(who) }) : kv.t(`${scheme}-behind`, { name: name(who), before: name(line[at - 1][0]) });
  };
  const paged = ([kind, who, ...more], line) => {
    const own = { name: name(who) };
    if (kind === "got") return kv.t(more[1].length === 1 ? "paged-got-one" : "paged-got", { ...own, blocks: list(more[1]) });
    if (kind === "wait") return waits("paged", who, line);
    if (kind === "more") return kv.t(more[0].length === 1 ? "paged-more-one" : "paged-more", { ...own, blocks: list(more[0]) });
    if (kind === "copy") return kv.t("paged-copy", { ...own, source: more[0], target: more[1] });
    if (kind === "share") return kv.t("paged-share", { ...own, parent: name(more[0]), blocks: list(more[1]), n: more[1].length });
    if (kind === "end" || kind === "stop") return kv.t(`paged-${kind}`, { ...own, n: count("blocks", more[0]) });
    return kv.t(`paged-${kind}`, own);
  };
  const reserved = ([kind, who, ...more], line) => {
    const own = { name: name(who) };
    if (kind === "got") return kv.t("reserved-got", { ...own, first: more[1][0], last: more[1][1] });
    if (kind === "end" || kind === "stop") return kv.t(`reserved-${kind}`, { ...own, n: more[0] });
    if (kind === "wait") return waits("reserved", who, line);
    return kv.t(`reserved-${kind}`, own);
  };
  const join = (sentences) => sentences.join(kv.t("join"));
  // Everybody who found no block, in one sentence at the end.
  const pagedEvents = ({ events, waiting }) => {
    const full = events.filter(([kind]) => kind === "full"), others = events.filter(([kind]) => kind !== "full");
    return [...others.map((event) => paged(event, waiting)), ...(full.length ? [kv.t("paged-full", { names: list(full.map(([, who]) => name(who))) })] : [])];
  };
  const reservedEvents = ({ events, waiting }) => events.map((event) => reserved(event, waiting));
  return {
    name, list, count,
    // What was done, and what it did to the blocks and to the pieces.
    say: (item, born, now, before) => join([action(item, born, now, before), ...(now.refused ? [kv.t(`refused-${now.refused}`)] : [...pagedEvents(now.paged), ...reservedEvents(now.reserved)])]),
  };
};
