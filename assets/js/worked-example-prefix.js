// Worked example, C: requests that begin with the same document, kept apart and with the common prefix kept once.
KV.widgets["worked-example-prefix"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const part = KV.workedCase(kv, props, root, ["requests", "tokens", "prefix", "block", "cache", "prefill"], (values) => draw(values));

  const groups = ["apart", "once"].map((name) => {
    const title = el("p", { class: "kv-note" }), rows = el("div", { class: "we-rows" });
    return { name, title, rows, node: el("div", { class: "we-group" }, title, rows) };
  });
  const kinds = [["shared", "="], ["prefix", ""], ["used", ""], ["pointer", ""]];
  const show = view.figure(part.stage, groups.map((group) => group.node), view.key(kinds));
  const list = view.outputs(part.readout, { "shared-tokens": "computed", "lost-tokens": "computed", apart: "computed", once: "computed", saved: "computed", tail: "computed", "prefill-apart": "computed", "prefill-once": "computed", "prefill-saved": "computed", "still-read": "computed" });
  const note = part.below.appendChild(el("p", { class: "kv-note" }));

  // One request: its shared blocks, the rest of its prefix that fills no block, what is its own.
  const row = (now, share, first, height) => {
    const lengths = [[first, share.shared], ["prefix", share.unshared], ["used", now.tokens - share.shared - share.unshared]];
    return el("div", { class: "we-row", style: `height:${height}px` }, lengths.filter(([, length]) => length > 0).map(([kind, length]) => {
      const node = el("span", { class: `we-piece is-${kind}` });
      node.style.flexBasis = `${(100 * length) / now.tokens}%`;
      return node;
    }));
  };
  const drawRows = (now, share) => {
    const height = Math.max(5, Math.min(16, Math.floor(150 / now.requests)));
    for (const group of groups) {
      group.title.textContent = kv.t(`group-${group.name}`, { size: size.binary(share[group.name]) });
      group.rows.replaceChildren(...Array.from({ length: now.requests }, (_, i) =>
        row(now, share, group.name === "apart" ? "prefix" : i === 0 ? "shared" : "pointer", height)));
    }
  };

  const draw = (values) => {
    const now = view.settings(values), each = math.perToken(now.model, now.element_bytes), prefix = Math.min(values.prefix, now.tokens);
    const share = math.sharing(each, now.requests, now.tokens, prefix, values.block), rate = BigInt(values.prefill);
    const time = (tokens) => math.duration(math.divided(BigInt(tokens) * 10n ** 9n, rate));
    const prefill = (tokens) => kv.t("prefill-tokens", { tokens: view.tokens(tokens), time: time(tokens) });
    drawRows(now, share);
    const words = { n: now.requests, apart: size.binary(share.apart), once: size.binary(share.once), saved: size.binary(share.saved), tokens: size.count(share.savedPrefill), time: time(share.savedPrefill) };
    const text = now.requests === 1 ? kv.t("c-alone") : share.shared === 0 ? kv.t("c-none") : kv.t("c-answer", words);
    show(kv.t("c-figure", { text }), text);
    list({
      "shared-tokens": kv.t("shared-blocks", { tokens: view.tokens(share.shared), blocks: size.count(share.shared / values.block), block: size.count(values.block) }), "lost-tokens": view.tokens(share.unshared),
      apart: math.both(share.apart), once: math.both(share.once), saved: math.both(share.saved), tail: math.both(share.tail),
      "prefill-apart": prefill(now.requests * now.tokens), "prefill-once": prefill(share.prefill), "prefill-saved": prefill(share.savedPrefill), "still-read": math.both(share.apart),
    });
    note.textContent = view.join(values.prefix > now.tokens ? kv.t("c-clipped", { prefix: size.count(values.prefix), tokens: size.count(now.tokens) }) : "", view.beyond(values), now.dtype.note);
    part.say(text);
  };
};
