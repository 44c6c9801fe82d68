// Worked example, A: what one GPU has to hold, and how many such requests fit.
KV.widgets["worked-example-capacity"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const part = KV.workedCase(kv, props, root, ["requests", "tokens", "gpu", "tp", "cache", "weights", "reserve"], (values) => draw(values));

  const presets = el("div", { class: "we-presets", role: "group", "aria-label": kv.t("logical") });
  const buttons = props.counts.map((count) => {
    const amount = el("b", { class: "kv-num" });
    const node = el("button", { type: "button", class: "we-preset", onclick: () => part.set({ requests: count }) }, el("span", {}, view.requests(count)), amount);
    presets.append(node);
    return { count, node, amount };
  });
  part.stage.append(el("p", { class: "kv-note" }, kv.t("logical"), " ", view.badge("computed")), presets);

  const pieces = Object.fromEntries([["weights", "W"], ["reserve", "R"], ["k", "K"], ["v", "V"], ["free", ""]].map(([kind, letter]) => [kind, view.piece(kind, letter)]));
  const edge = el("span", { class: "we-edge" }, el("span", { class: "we-edge-name kv-num" }));
  const show = view.figure(part.stage, el("div", { class: "we-bar" }, Object.values(pieces), edge), view.key([["weights", "W"], ["reserve", "R"], ["k", "K"], ["v", "V"], ["free", ""]]));
  const list = view.outputs(part.readout, { memory: "quoted", "rank-weights": "computed", "rank-each": "computed", "rank-kv": "computed", left: "computed", fit: "computed" });
  const table = view.table(part.below, kv.t("ranks-caption"), ["tp", "heads", "weights", "kv", "left", "fit"].map((name) => kv.t(`ranks-${name}`)), "computed");
  const sources = part.below.appendChild(el("p", { class: "kv-note" }));

  const left = (use) => kv.t(use.free < 0n ? "short-by" : "left-over", { size: size.binary(use.free < 0n ? -use.free : use.free) });
  const answer = (now, use) => {
    const words = { tp: now.tp, kv: size.binary(use.kv), weights: size.binary(use.weights), memory: size.binary(use.memory), left: size.binary(use.free < 0n ? -use.free : use.free), fit: size.count(use.fit), n: now.requests };
    const verdict = use.room <= 0n ? "a-no-room" : use.free < 0n ? "a-short" : "a-fits";
    return view.join(kv.t(now.tp === 1 ? "a-holds-one" : "a-holds", words), kv.t(verdict, words), now.tp > now.model.kv_heads ? kv.t("a-copies", { heads: now.model.kv_heads, copies: now.tp / now.model.kv_heads }) : "");
  };

  const drawBar = (use) => {
    const whole = use.free < 0n ? use.memory - use.free : use.memory;
    const parts = { weights: use.weights, reserve: use.reserve, k: use.kv / 2n, v: use.kv - use.kv / 2n, free: use.free < 0n ? 0n : use.free };
    for (const [kind, bytes] of Object.entries(parts)) {
      pieces[kind].style.flexBasis = `${view.share(bytes, whole)}%`;
      pieces[kind].classList.toggle("is-thin", view.share(bytes, whole) < 5);
    }
    edge.style.insetInlineStart = `${view.share(use.memory, whole)}%`;
    edge.classList.toggle("is-left", view.share(use.memory, whole) > 50);
    edge.firstChild.textContent = kv.t("edge", { size: size.binary(use.memory) });
  };

  const draw = (values) => {
    const now = view.settings(values), use = math.rankUse(now), each = math.perToken(now.model, now.element_bytes) * BigInt(now.tokens);
    for (const { count, node, amount } of buttons) {
      amount.textContent = size.binary(each * BigInt(count));
      node.setAttribute("aria-pressed", String(count === now.requests));
    }
    drawBar(use);
    const text = answer(now, use);
    show(kv.t("a-figure", { text }), text);
    list({ memory: math.both(use.memory), "rank-weights": math.both(use.weights), "rank-each": math.both(use.each), "rank-kv": math.both(use.kv), left: left(use), fit: use.room <= 0n ? kv.t("none-fit") : size.count(use.fit) });
    const rows = props.tp.map((tp) => [tp, math.rankUse({ ...now, tp })]);
    table(rows.map(([tp, row]) => [KV.number(tp), KV.number(math.headsOnRank(now.model, tp)), size.binary(row.weights), size.binary(row.kv), left(row), row.room <= 0n ? "0" : size.count(row.fit)]), props.tp.indexOf(now.tp));
    sources.textContent = view.join(kv.t("source-gpu", now.device), kv.t("source-model", props.model), now.dtype.note, view.beyond(values));
    part.say(text);
  };
};
