// The arithmetic in figures: one score, one weight, one number of the output, and the check against the model's own.
KV.attentionSums = (root, kv, badge, onDimension) => {
  "use strict";
  const { el } = KV, draw = KV.attention, math = KV.attentionMath;
  const lines = Array.from({ length: 7 }, () => el("p", { class: "kv-num" }));
  const [choice, product, score, weight, outputChoice, output, model] = lines;
  choice.className = outputChoice.className = "kv-attn-choice";
  const check = el("ul", { class: "kv-attn-check kv-num" });
  const place = el("div", { class: "kv-attn-dimension" });
  const text = el("p", {}, kv.t("check"), " ");
  text.append(badge.cloneNode(true));
  root.append(el("h3", {}, kv.t("arithmetic")), choice, product, score, weight, outputChoice, place, output, model,
    el("div", { class: "kv-attn-checked" }, text, check));

  let control = null;
  const dimensions = (dim, value) => {
    if (control) return;
    control = KV.controls(place, [{ name: "dim", kind: "range", label: kv.t("dimension"), min: 0, max: dim - 1, value }], (values) => onDimension(values.dim));
  };

  const join = (parts, count, write) => {
    const { kept, rest, others } = math.terms(parts, count);
    const words = kept.map(({ index, value }) => write(index, value)).join(" + ");
    return others ? `${words} + ${kv.t("rest", { count: others, rest: draw.signed(rest) })}` : words;
  };

  const show = (pieces, head, { token, key, dim }, result) => {
    const q = math.row(head.q, token, head.dim), k = math.row(head.k, key, head.dim);
    const products = Array.from(q, (value, index) => value * k[index]), sum = products.reduce((a, b) => a + b, 0);
    const at = (matrix, row) => matrix[row * head.dim + dim];
    choice.textContent = kv.t("key-choice", { key: draw.quoted(pieces[key]), query: draw.quoted(pieces[token]) });
    product.textContent = kv.t("line-dot", {
      terms: join(products, 3, (index) => `${draw.signed(q[index], 2)}×${draw.signed(k[index], 2)}`), sum: draw.signed(sum, 2),
    });
    score.textContent = kv.t("line-score", { sum: draw.signed(sum, 2), dim: head.dim, score: draw.signed(result.scores[key], 3) });
    weight.textContent = kv.t("line-weight", {
      score: draw.signed(result.scores[key], 3), count: token + 1, weight: draw.signed(result.weights[key], 4),
    });
    outputChoice.textContent = kv.t("output-choice", { dimension: dim });
    const shares = result.weights.map((share, index) => share * at(head.v, index));
    output.textContent = kv.t("line-output", {
      terms: join(shares, 4, (index) => `${draw.signed(result.weights[index])}×${draw.signed(at(head.v, index))}`),
      sum: draw.signed(result.output[dim], 4),
    });
    model.textContent = kv.t("line-model", { output: draw.signed(at(head.output, token), 4) });
  };

  const verify = (head, dtype) => {
    const worst = math.check(head), most = draw.largest(head.output).toFixed(2);
    check.replaceChildren(...["scores", "weights", "output"].map((name) =>
      el("li", { "data-check": name, "data-value": worst[name] }, kv.t(`check-${name}`, { value: draw.small(worst[name]), dtype, largest: most }))));
  };
  return { dimensions, show, verify };
};
