// The words and numbers beside the figure of the page "Cache size": the outputs, the answer, the caveats, the sources.
KV.cacheSizeView = (kv, badges) => {
  "use strict";
  const { el } = kv, size = KV.cacheSize;
  const badge = (kind) => el("span", { class: `kv-badge kv-${kind}`, title: badges[kind].meaning },
    el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, badges[kind].mark), badges[kind].word);
  const both = (n) => kv.t("both", { binary: size.binary(n), decimal: size.decimal(n) });
  const tokens = (n) => (n === null ? kv.t("never") : kv.t("n-tokens", { n: size.count(n) }));
  const longest = (now) => (now.fits === now.limit ? kv.t("fits-all", { n: size.count(now.limit) }) : tokens(now.fits));

  const OUTPUTS = {
    now: "computed", "per-token": "computed", constant: "computed", total: "computed", "one-gpu": "computed", "all-gpus": "computed",
    read: "computed", weights: "quoted", memory: "quoted", crossing: "computed", fits: "computed",
  };
  // What one device of several holds is shown only where there are several.
  const SEVERAL = new Set(["one-gpu", "all-gpus"]);
  const texts = (now) => ({
    now: size.readable(now.slopeNow),
    "per-token": size.readable(now.slope),
    constant: size.readable(now.constant) + (now.settled ? kv.t("settled", { n: size.count(now.settled) }) : ""),
    total: both(now.total),
    "one-gpu": both(now.onOne),
    "all-gpus": both(now.onAll),
    read: both(now.read),
    weights: now.weights === null ? kv.t("weights-unknown") : both(now.weights),
    memory: now.device ? both(now.memory) : kv.t("none"),
    crossing: now.weights === null ? kv.t("weights-unknown") : tokens(now.crossing),
    fits: now.device ? (now.room < 0n ? kv.t("weights-too-large") : longest(now)) : kv.t("none"),
  });
  const outputs = (root) => {
    const cells = {}, rows = {}, names = {};
    root.append(el("dl", { class: "cs-outputs" }, Object.entries(OUTPUTS).map(([name, origin]) => (rows[name] = el("div", {},
      el("dt", {}, (names[name] = el("span", {}, kv.t(`out-${name}`))), " ", badge(origin)),
      el("dd", {}, (cells[name] = el("output", { class: "kv-num", "data-out": name }))))))));
    return (now) => {
      for (const [name, text] of Object.entries(texts(now))) cells[name].textContent = text;
      for (const name of SEVERAL) rows[name].hidden = now.ranks === 1;
      const several = now.ranks === 1 ? "" : "-each";
      for (const name of ["crossing", "fits"]) names[name].textContent = kv.t(`out-${name}${several}`);
    };
  };

  // Two decimals, and for less than a tenth two digits that say something.
  const share = (part, whole) => {
    const value = Number((part * 10n ** 9n) / whole) / 1e9;
    return value >= 0.1 || value === 0 ? KV.number(value, 2) : value.toLocaleString("en-US", { maximumSignificantDigits: 2, maximumFractionDigits: 20 });
  };
  const meeting = (now) => {
    if (now.weights === null) return [kv.t("answer-unknown")];
    if (now.crossing === null) return [kv.t("answer-never")];
    const words = [kv.t(now.batch > 1 ? "answer-batch" : "answer", { n: size.count(now.crossing), batch: size.count(now.batch) })];
    if (now.stated) words.push(kv.t(now.crossing > now.stated ? "answer-beyond" : "answer-within", { stated: size.count(now.stated), model: now.title }));
    return words;
  };
  const answer = (now) => {
    const words = meeting(now), here = { tokens: size.count(now.tokens), total: size.binary(now.total) };
    words.push(now.weights === null ? kv.t("answer-size", here) : kv.t("answer-here", { ...here, share: share(now.total, now.weights) }));
    if (now.device && now.room < 0n) words.push(kv.t("answer-no-room", { gpu: now.device.title }));
    else if (now.device && now.fits === now.limit) words.push(kv.t("answer-fits-all", { gpu: now.device.title }));
    else if (now.device) words.push(kv.t(now.ranks > 1 ? "answer-fits-each" : "answer-fits", { gpu: now.device.title, n: size.count(now.fits), ranks: now.ranks }));
    return words.join(kv.t("join"));
  };
  const caveats = (now) => [
    now.mode === "own" ? kv.t("edited", { model: now.base.title }) : "",
    now.stated && now.tokens > now.stated ? kv.t("beyond", { stated: size.count(now.stated), model: now.title }) : "",
    now.ranks > 1 ? kv.t("ranks-note", { ranks: now.ranks }) : "",
    now.form.note,
  ].filter(Boolean).join(kv.t("join"));

  // Inside the figure a device's model is enough.
  const shortened = (device) => device.title.replace(/^NVIDIA (GeForce )?/, "");
  const line = (kind, bytes, words) => ({ kind, bytes: Number(bytes), label: kv.t(`line-${kind}`, { size: size.binary(bytes), ...words }) });
  const lines = (now) => [
    now.weights !== null ? line("weights", now.weightsOne) : null,
    now.device ? line("memory", now.memory, { gpu: shortened(now.device) }) : null,
    now.device && now.weights !== null && now.room > 0n ? line("room", now.room) : null,
  ].filter(Boolean);
  const sources = (now) => [
    now.source.source ? kv.t("source-model", { ...now.source }) : kv.t("source-pasted"),
    now.device ? kv.t("source-gpu", { ...now.device }) : "",
  ].filter(Boolean).join(kv.t("join"));
  return { badge, outputs, answer, caveats, lines, sources };
};
