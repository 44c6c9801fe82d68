// Two parts of the row, each with its own maximum, joined: what Split-KV does with the parts of a long cache.
KV.widgets["flash-attention-merge"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["flash-attention-math", "flash-attention-view"].map(kv.load));
  const { el } = kv, math = KV.flashAttention, view = KV.flashView(kv, props), { digits, vector } = view;
  const start = math.parse(props.scores, [2, props.most], props.limit);
  let row = math.current || { scores: start, values: math.spread(math.pairs(props.values, props.most, props.valueLimit), start.length) };
  root.classList.add("kv-card");
  const declaration = [{ name: "cut", kind: "range", label: kv.t("cut"), min: 1, max: props.most - 1, value: props.cut, format: (n) => kv.t("cut-at", { a: n, b: row.scores.length - n }) }];
  const controls = kv.controls(root, declaration, () => draw());
  const show = view.table(root, "merge-caption", ["merge-what", "merge-one", "merge-two", "merge-joined", "merge-whole"], "merge", "computed");
  const verdict = el("p", { class: "fa-gap", "data-out": "merge-gap", role: "status" }), mean = el("p", { class: "kv-note", "data-out": "merge-mean" });
  root.append(verdict, mean);

  const total = (from, to) => math.fold(math.start(props.dim), row.scores.slice(from, to), row.values.slice(from, to)).after;
  const draw = () => {
    const n = row.scores.length, cut = controls.values.cut, parts = [total(0, cut), total(cut, n)], joined = math.merge(...parts), whole = total(0, n), states = [...parts, joined, whole];
    const out = states.map((s) => (s.l === 0 ? null : math.output(s))), lse = states.map(math.lse), share = (i) => (lse[2] === math.NOTHING ? 0 : Math.exp(lse[i] - lse[2]));
    const factor = (i) => (joined.m === math.NOTHING ? kv.t("nothing") : digits(Math.exp(parts[i].m - joined.m))), text = (x) => (x === null ? kv.t("nothing") : vector(x));
    const keys = [[1, cut], [cut + 1, n], [1, n], [1, n]].map(([a, b]) => (a === b ? String(a) : `${a}–${b}`));
    show([
      [kv.t("merge-keys"), ...keys], [kv.t("row-m"), ...states.map((s) => digits(s.m))], [kv.t("row-l"), ...states.map((s) => digits(s.l))], [kv.t("row-u"), ...states.map((s) => vector(s.u))],
      [kv.t("merge-factor"), factor(0), factor(1), "", ""], [kv.t("merge-out"), ...out.map(text)], [kv.t("merge-lse"), ...lse.map(digits)],
      [kv.t("merge-share"), digits(share(0)), digits(share(1)), digits(share(0) + share(1)), ""],
    ]);
    // The same through outputs and log-sum-exps alone, as a second kernel gets them.
    const again = joined.u.map((_, d) => [0, 1].reduce((sum, i) => sum + (out[i] === null ? 0 : share(i) * out[i][d]), 0)), seen = out[3] !== null;
    verdict.textContent = seen ? kv.t("merge-gap", { states: digits(math.gap(out[2], out[3])), lse: digits(math.gap(again, out[3])) }) : kv.t("gap-blank");
    const plain = again.map((_, d) => (out[0] && out[1] ? (out[0][d] + out[1][d]) / 2 : NaN));
    mean.textContent = out[0] && out[1] ? kv.t("merge-mean", { mean: vector(plain), gap: digits(math.gap(plain, out[3])) }) : kv.t("merge-mean-none");
    root.dataset.renders = Number(root.dataset.renders || 0) + 1;
  };
  // Another row may be shorter: the cut stays inside it.
  const adopt = (next) => {
    row = next;
    const most = row.scores.length - 1;
    controls.input("cut").max = declaration[0].max = most;
    controls.set({ cut: Math.min(most, controls.values.cut) });
    draw();
  };
  addEventListener("kv-flash", (event) => { if (root.isConnected) adopt(event.detail); });
  adopt(row);
};
