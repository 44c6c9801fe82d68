// The badge of an origin, from its name, mark, word and meaning.
KV.pagedAttentionBadge = ({ el }, origin) =>
  el("span", { class: `kv-badge kv-${origin.name}`, title: origin.meaning }, el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, origin.mark), origin.word);
