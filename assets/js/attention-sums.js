// The arithmetic in figures: one score, one weight, one number of the output, and the check against the model's own.
KV.attentionSums = (root, checkRoot, kv, badge, onDimension) => {
  "use strict";
  const { el } = KV, draw = KV.attention, math = KV.attentionMath;
  const lines = Array.from({ length: 7 }, () => el("p", { class: "kv-num" }));
  const [choice, product, score, weight, outputChoice, output, model] = lines;
  choice.className = outputChoice.className = "kv-attn-choice";
  const check = el("ul", { class: "kv-attn-check kv-num" });
  const place = el("div", { class: "kv-attn-dimension" });
  const text = el("p", {}, kv.t("check"), " ");
  text.append(badge.cloneNode(true));
  root.append(el("h3", {}, kv.t("arithmetic")), choice, product, score, weight, outputChoice, place, output, model);
  checkRoot.append(el("div", { class: "kv-attn-checked" }, text, check));

  let control = null;
  const dimensions = (dim, first) => {
    control ??= KV.controls(place, [
      { name: "dim", kind: "range", label: kv.t("dimension"), min: 0, max: dim - 1, value: first() },
    ], (values) => onDimension(values.dim));
    return control.values.dim;
  };

  const join = (parts, count, write) => {
    const { kept, rest, others } = math.terms(parts, count);
    const words = kept.map(({ index }) => write(index)).join(" + ");
    return others ? `${words} + ${kv.t("rest", { count: others, rest: draw.fine(rest) })}` : words;
  };
  // A factor of a product: a negative one in parentheses.
  const factor = (value, decimals) => (value < 0 ? `(${draw.signed(value, decimals)})` : draw.signed(value, decimals));

  const show = (pieces, head, { token, key, dim }, result) => {
    const q = math.row(head.q, token, head.dim), k = math.row(head.k, key, head.dim);
    const products = Array.from(q, (value, index) => value * k[index]), sum = products.reduce((a, b) => a + b, 0);
    const at = (matrix, row) => matrix[row * head.dim + dim];
    choice.textContent = kv.t("key-choice", { key: draw.quoted(pieces[key]), query: draw.quoted(pieces[token]) });
    product.textContent = kv.t("line-dot", {
      terms: join(products, 3, (index) => `${factor(q[index], 2)}×${factor(k[index], 2)}`), sum: draw.signed(sum, 2),
    });
    score.textContent = kv.t("line-score", { sum: draw.signed(sum, 2), dim: head.dim, score: draw.signed(result.scores[key], 3) });
    weight.textContent = kv.t("line-weight", {
      score: draw.signed(result.scores[key], 3), count: token + 1, weight: draw.share(result.weights[key]),
    });
    outputChoice.textContent = kv.t("output-choice", { dimension: dim });
    const shares = result.weights.map((share, index) => share * at(head.v, index));
    output.textContent = kv.t("line-output", {
      terms: join(shares, 4, (index) => `${draw.share(result.weights[index])}×${factor(at(head.v, index), 3)}`),
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
