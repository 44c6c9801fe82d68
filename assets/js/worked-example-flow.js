// Worked example, E: which resource is short, what to measure, what to try. Each branch knows what the case's arithmetic says.
KV.widgets["worked-example-flow"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const verdicts = {};
  const items = (name, what) => kv.t(`flow-${name}-${what}`).split("|").map((text) => el("li", {}, text.trim()));
  const branch = (name) => el("details", { class: "kv-card we-branch", "data-branch": name, open: KV.state.get("flow") === name, ontoggle: (event) => opened(event.target) },
    el("summary", {}, el("span", { class: "we-branch-name" }, kv.t(`flow-${name}`)), (verdicts[name] = el("span", { class: "we-verdict kv-num" }))),
    ["measure", "try", "proof", "not"].map((what) => el("div", { class: `we-what is-${what}` }, el("h3", {}, kv.t(`flow-${what}`)), el("ul", {}, items(name, what)))));
  // One branch at a time: a fault has one first cause to look for.
  const opened = (node) => {
    if (node.open) for (const other of branches) if (other !== node) other.open = false;
    const open = branches.find((item) => item.open);
    KV.state.set({ flow: open ? open.dataset.branch : null });
  };
  const branches = props.branches.map(branch);
  root.append(el("p", { class: "we-root" }, kv.t("flow-root")), el("div", { class: "we-branches" }, branches), el("p", { class: "we-root" }, kv.t("flow-end")));

  KV.workedWatch(root, props, kv, (values) => {
    const now = view.settings(values), use = math.rankUse(now), step = math.step(now);
    const share = math.sharing(math.perToken(now.model, now.element_bytes), now.requests, now.tokens, Math.min(values.prefix, now.tokens), values.block);
    const move = math.move(now.tokens, math.perToken(now.model, now.element_bytes), now.link, values.prefill);
    verdicts.capacity.textContent = use.free < 0n ? kv.t("v-capacity-short", { size: size.binary(-use.free) }) : kv.t("v-capacity-fits", { size: size.binary(use.free) });
    verdicts.decode.textContent = kv.t(step.kv >= step.weights ? "v-decode-kv" : "v-decode-weights", { share: math.percent(step.kv >= step.weights ? step.kv : step.weights, step.total) });
    verdicts.prefill.textContent = kv.t("v-prefill", { share: math.percent(BigInt(share.savedPrefill), BigInt(now.requests * now.tokens)) });
    verdicts.interference.textContent = kv.t("v-interference", { time: math.duration(move.recomputeNs), load: math.duration(move.loadNs) });
    verdicts.quality.textContent = kv.t("v-quality");
  });
};
