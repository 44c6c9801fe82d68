// What attention stores and moves, in whole numbers (BigInt): the browser's copy of explorer/estimators/attention_scores.py.
// A setting: q_len, kv_len, heads, batch, head_dim, element_bytes, block_q. A test compares the two over random settings.
KV.flashBytes = (() => {
  "use strict";
  const big = BigInt, LSE = 4n;
  const rows = (s) => big(s.batch) * big(s.heads) * big(s.q_len);
  const head = (s) => big(s.q_len) * big(s.kv_len) * big(s.element_bytes);
  const scores = (s) => rows(s) * big(s.kv_len) * big(s.element_bytes);
  const output = (s) => rows(s) * big(s.head_dim) * big(s.element_bytes);
  const lse = (s) => rows(s) * LSE;
  const flops = (s) => 4n * rows(s) * big(s.kv_len) * big(s.head_dim);
  // One head of one sequence; both lists hold [name, bytes] in the order of the algorithm.
  const query = (s) => big(s.q_len) * big(s.head_dim) * big(s.element_bytes), keys = (s) => big(s.kv_len) * big(s.head_dim) * big(s.element_bytes);
  const naive = (s) => [["read-qk", query(s) + keys(s)], ["write-s", head(s)], ["read-s", head(s)], ["write-p", head(s)], ["read-pv", head(s) + keys(s)], ["write-o", query(s)]];
  const tiles = (s) => Math.ceil(s.q_len / s.block_q);
  const flash = (s) => [["read-q", query(s)], ["read-kv", big(tiles(s)) * 2n * keys(s)], ["write-o", query(s)], ["write-lse", big(s.q_len) * LSE]];
  const moved = (moves) => moves.reduce((sum, [, bytes]) => sum + bytes, 0n);
  // What a tile of Queries holds on the chip throughout: Queries, and u, m and l in fp32.
  const STATE = 4n, tile = (s) => big(Math.min(s.block_q, s.q_len)) * (big(s.head_dim) * (big(s.element_bytes) + STATE) + 2n * STATE);
  return { head, scores, output, lse, flops, naive, flash, tiles, tile, moved, rows };
})();
