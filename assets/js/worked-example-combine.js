// Worked example, F: two savings together. Ratios of bytes multiply; ratios of a step's bound do not.
KV.widgets["worked-example-combine"] = async (root, props, kv) => {
  "use strict";
  await kv.load("worked-example-view");
  await KV.workedReady(kv);
  const { el } = kv, size = KV.cacheSize, math = KV.workedMath, view = KV.workedView(kv, props);
  const table = view.table(root, kv.t("combine-caption"), ["what", "kv", "kv-ratio", "weights", "read", "time", "ratio"].map((name) => kv.t(`combine-${name}`)), "computed");
  const answer = root.appendChild(el("p", { class: "we-answer", "data-out": "combined" }));

  KV.workedWatch(root, props, kv, (values) => {
    const now = view.settings(values), rows = props.combinations.map(({ name, bytes, bits }) => ({ name, ...math.step({ ...now, element_bytes: bytes, bits }) }));
    const [base, cache, weights, both] = rows, ratio = (row) => math.times(base.total, row.total);
    table(rows.map((row) => [kv.t(`combine-row-${row.name}`), size.decimal(row.kv), math.times(row.kv, base.kv), size.decimal(row.weights), size.decimal(row.total), math.duration(row.ns), ratio(row)]));
    const product = math.times(base.total * base.total, cache.total * weights.total);
    answer.textContent = kv.t("combine-answer", { cache: ratio(cache), weights: ratio(weights), product, both: ratio(both), n: now.requests, tokens: size.tokens(now.tokens) });
  });
};
