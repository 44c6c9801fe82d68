// One head's attention, recomputed here in double precision from the Query, Keys and Values that the model gave.
KV.attentionMath = (() => {
  "use strict";

  const row = (matrix, index, width) => matrix.subarray(index * width, (index + 1) * width);

  const dot = (left, right) => {
    let sum = 0;
    for (let index = 0; index < left.length; index += 1) sum += left[index] * right[index];
    return sum;
  };

  const softmax = (scores) => {
    const top = Math.max(...scores), parts = scores.map((score) => Math.exp(score - top));
    const total = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / total);
  };

  // What token `query` gets from the tokens 0..query: scores, weights and their weighted sum of Values.
  const lookup = (head, query) => {
    const { dim, q, k, v } = head, wanted = row(q, query, dim), scores = [];
    for (let key = 0; key <= query; key += 1) scores.push(dot(wanted, row(k, key, dim)) / Math.sqrt(dim));
    const weights = softmax(scores), output = new Float64Array(dim);
    weights.forEach((weight, key) => {
      const value = row(v, key, dim);
      for (let index = 0; index < dim; index += 1) output[index] += weight * value[index];
    });
    return { scores, weights, output };
  };

  // The largest differences between this recomputation and the model's own numbers, over all tokens of the head.
  const check = (head) => {
    const worst = { scores: 0, weights: 0, output: 0 }, { length, dim } = head;
    for (let query = 0; query < length; query += 1) {
      const mine = lookup(head, query);
      for (let key = 0; key <= query; key += 1) {
        worst.scores = Math.max(worst.scores, Math.abs(mine.scores[key] - head.scores[query * length + key]));
        worst.weights = Math.max(worst.weights, Math.abs(mine.weights[key] - head.weights[query * length + key]));
      }
      for (let index = 0; index < dim; index += 1) {
        worst.output = Math.max(worst.output, Math.abs(mine.output[index] - head.output[query * dim + index]));
      }
    }
    return worst;
  };

  // The `count` largest terms of a sum by size, in their own order, and what the others add up to.
  const terms = (values, count) => {
    const order = values.map((value, index) => ({ value, index })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const kept = order.slice(0, count).sort((a, b) => a.index - b.index);
    return { kept, rest: order.slice(count).reduce((sum, item) => sum + item.value, 0), others: Math.max(0, values.length - count) };
  };

  return { row, lookup, check, terms };
})();
