// Block arithmetic: the browser's copy of explorer/estimators/paging.py and sharing.py. A test compares them on random settings.
KV.pagedAttention = (() => {
  "use strict";
  const blocks = (tokens, size) => Math.ceil(tokens / size);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return {
    ENTRY_BYTES: 4,
    // Requests of these lengths in blocks of `size` tokens; `entries` counts blocks and table entries alike.
    paging: (lengths, size) => {
      const tokens = sum(lengths), entries = sum(lengths.map((n) => blocks(n, size)));
      return { tokens, entries, slots: entries * size, unfilled: entries * size - tokens, tableBytes: entries * 4 };
    },
    expected: (size) => (size - 1) / 2,
    place: (token, size) => [Math.floor(token / size), token % size],
    // Requests of prefix + tail tokens each, the prefix kept once where it fills blocks.
    sharing: (requests, prefix, tail, size) => {
      const full = Math.floor(prefix / size), apart = requests * blocks(prefix + tail, size), saved = (requests - 1) * full;
      return { full, rest: prefix - full * size, apart, together: apart - saved, saved, prefill: saved * size };
    },
  };
})();
