// The three choices: which token asks, in which layer, with which query head. All native controls.
KV.attentionPick = (root, kv, shape, chosen, onPick) => {
  "use strict";
  const { el } = KV, draw = KV.attention;
  const name = KV.unique();
  const { layers, heads, kvHeads } = shape, shared = heads / kvHeads;

  const tokens = el("div", { class: "kv-attn-chips" });
  root.append(el("fieldset", { class: "kv-attn-tokens" }, el("legend", {}, kv.t("query")), tokens));
  const place = el("div", { class: "kv-attn-place" });
  root.append(place);
  const layer = KV.controls(place, [
    { name: "layer", kind: "range", label: kv.t("layer"), min: 0, max: layers - 1, value: chosen.layer, key: false },
  ], (values) => onPick({ layer: values.layer }));

  // Query heads stand above the KV head that they share.
  const radios = [];
  const groups = Array.from({ length: kvHeads }, (_, kvHead) => el("div", { class: "kv-attn-group" },
    el("div", { class: "kv-attn-heads" }, Array.from({ length: shared }, (_, offset) => {
      const head = kvHead * shared + offset;
      radios[head] = el("input", { type: "radio", class: "kv-sr", name, value: head, onchange: () => onPick({ head }), "aria-label": kv.t("head-name", { head }) });
      return el("label", { class: "kv-attn-head kv-q" }, radios[head], `Q${head}`);
    })),
    el("div", { class: "kv-attn-kv", title: kv.t("kv-name", { kv: kvHead }) },
      el("span", { class: "kv-k" }, `K${kvHead}`), el("span", { class: "kv-v" }, `V${kvHead}`))));
  const words = el("p", { class: "kv-note kv-attn-shares" });
  place.append(el("fieldset", { class: "kv-attn-head-box" }, el("legend", {}, kv.t("head")), el("div", { class: "kv-attn-groups" }, groups), words));

  const showTokens = (pieces) => {
    tokens.replaceChildren(...pieces.map((piece, index) => el("label", { class: "kv-attn-chip" },
      el("input", { type: "radio", class: "kv-sr", name: `${name}-token`, value: index, onchange: () => onPick({ token: index }) }),
      el("span", { class: "kv-attn-index" }, String(index)), draw.token(piece), index === 0 ? el("span", { title: kv.t("sink-mark") }, "⚓") : null)));
  };

  const show = ({ layer: at, head, token }) => {
    layer.set({ layer: at });
    const kvHead = Math.floor(head / shared);
    radios[head].checked = true;
    groups.forEach((group, index) => group.classList.toggle("is-read", index === kvHead));
    const mates = Array.from({ length: shared }, (_, offset) => kvHead * shared + offset).join(", ");
    words.textContent = kv.t(shared > 1 ? "shares" : "shares-alone", { head, kv: kvHead, heads: mates });
    const chip = tokens.querySelector(`input[value="${token}"]`);
    if (chip) chip.checked = true;
    Array.from(tokens.children).forEach((label, index) => label.classList.toggle("is-masked", index > token));
  };
  return { showTokens, show };
};
