// The badge of an origin, from its name, mark and word.
KV.pagedAttentionBadge = ({ el }, origin) =>
  el("span", { class: `kv-badge kv-${origin.name}` }, el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, origin.mark), origin.word);
