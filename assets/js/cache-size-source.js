// What is counted: a model of the catalogue, a shape of one's own, or a config.json that the reader pastes.
// KV.cacheSizeSource(root, props, kv, onChange) -> { mode(), entry(), base(), choice(), mtp(), params() }; `base` is the catalogue's
// model that an own shape departs from. The text of a config goes to the server once, when the button is pressed.
KV.cacheSizeSource = (root, props, kv, onChange) => {
  "use strict";
  const { el } = kv, MODES = ["catalogue", "own", "config"];
  const models = Object.fromEntries(props.models.map((item) => [item.name, item]));
  const known = (name) => (name !== null && Object.hasOwn(models, name) ? name : null);
  const from = kv.state.get("from");
  let name = known(kv.state.get("model")) || props.start.model, pasted = null, stamp = 0;
  // An address with a shape in it means an own shape, also without saying so.
  let mode = MODES.includes(from) ? from : ["layers", "kv_heads", "head_dim"].some((key) => kv.state.get(key) !== null) ? "own" : "catalogue";
  let chosen = new Set((kv.state.get("assume") || "").split(","));

  const kinds = (item) => [...new Set(item.variants[""].groups.filter((group) => group.tensors.length).map((group) => group.title))].join(" + ");
  const words = (item) => [item.name, item.title, item.organisation, item.attention, item.model_type, item.date, kinds(item)].join(" ").toLowerCase();
  const pick = KV.cacheSizePick(kv, props.models.map((item) => ({
    name: item.name, title: item.title, words: words(item), note: `${item.organisation} · ${item.attention}`,
  })), (picked) => { name = picked; chosen = new Set(); turn("catalogue"); });

  const group = kv.unique();
  const radios = MODES.map((value) => el("input", { type: "radio", name: group, value, id: `${group}-${value}`, "data-mode": value, onchange: () => turn(value) }));
  const modes = el("div", { class: "cs-modes", role: "radiogroup", "aria-label": kv.t("from") },
    radios.map((radio) => el("label", { for: radio.id }, radio, el("span", {}, kv.t(`from-${radio.value}`)))));
  const ownNote = el("p", { class: "kv-note" }, kv.t("own-note"));

  const area = el("textarea", { id: kv.unique(), rows: 6, spellcheck: "false", autocomplete: "off", placeholder: '{ "model_type": "llama", "num_hidden_layers": 32, … }' });
  const verdict = el("p", { class: "cs-message", role: "status" });
  const button = el("button", { type: "button", class: "kv-button", onclick: () => read() }, kv.t("config-read"));
  const size = el("input", { type: "number", id: kv.unique(), min: 0, max: 100000, step: "any", inputmode: "decimal", "data-control": "params", oninput: () => onChange() });
  const config = el("div", { class: "kv-controls cs-config" },
    el("div", { class: "kv-control" }, el("div", { class: "kv-control-label" }, el("label", { for: area.id }, kv.t("config"))), area,
      el("p", { class: "kv-note" }, kv.t("config-help", { limit: KV.number(props.text_limit) })), button, verdict),
    el("div", { class: "kv-control" }, el("div", { class: "kv-control-label" }, el("label", { for: size.id }, kv.t("params"))), size));
  const options = el("fieldset", { class: "cs-switches" });
  root.append(modes, el("div", { class: "kv-controls cs-catalogue" }, pick.element), ownNote, config, options);

  const read = async () => {
    verdict.textContent = "";
    verdict.classList.remove("is-good");
    if (area.value.length > props.text_limit) { verdict.textContent = kv.t("config-long", { limit: KV.number(props.text_limit) }); return; }
    button.disabled = true;
    try {
      const answer = await kv.server.read_config(area.value);
      if (answer.status === "read") {
        pasted = answer.entry;
        stamp += 1;
        chosen = new Set();
        verdict.classList.add("is-good");
        verdict.textContent = kv.t("config-done", { type: pasted.model_type, layers: KV.number(new Set(pasted.variants[""].groups.flatMap((item) => item.layers)).size) });
        turn("config");
      } else verdict.textContent = answer.message;
    } catch {
      verdict.textContent = kv.t("config-failed");
    }
    button.disabled = false;
  };

  const entry = () => (mode === "config" ? pasted : models[name]);
  // An own shape starts from the chosen model where five numbers describe it.
  const base = () => (models[name].shape ? models[name] : models[props.start.model]);
  const turn = (to) => { mode = to; show(); onChange(true); };

  // The switches that this model has: assumptions with two sides, and its draft layers.
  const check = (key, text, help, on, act) => {
    const id = kv.unique(), box = el("input", { type: "checkbox", id, "data-switch": key, onchange: () => { act(box.checked); write(); onChange(); } });
    box.checked = on;
    return el("div", { class: "kv-control kv-control--check" }, box, el("label", { for: id }, text), help && el("p", { class: "kv-note" }, help));
  };
  const show = () => {
    radios.forEach((radio) => { radio.checked = radio.value === mode; });
    pick.show(name);
    pick.element.parentElement.hidden = mode === "config";
    ownNote.hidden = mode !== "own";
    config.hidden = mode !== "config";
    const now = mode === "own" ? null : entry(), drafts = now ? now.variants[""].mtp : [];
    const rows = (now ? now.switches : []).map((item) => check(item.name, item.on, kv.t("switch-off", { text: item.off }), chosen.has(item.name),
      (on) => (on ? chosen.add(item.name) : chosen.delete(item.name))));
    if (drafts.length) {
      const layers = new Set(drafts.flatMap((item) => item.layers)).size;
      rows.push(check("mtp", kv.t("mtp", { n: layers }), "", chosen.has("mtp"), (on) => (on ? chosen.add("mtp") : chosen.delete("mtp"))));
    }
    options.replaceChildren(el("legend", { class: "kv-sr" }, kv.t("switches")), ...rows);
    options.hidden = !rows.length;
    write();
  };
  const offered = () => (mode === "own" || !entry() ? [] : entry().switches.map((item) => item.name).filter((key) => chosen.has(key)).sort());
  const mtp = () => mode !== "own" && Boolean(entry()) && entry().variants[""].mtp.length > 0 && chosen.has("mtp");
  const write = () => kv.state.set({
    model: name === props.start.model ? null : name, from: mode === "catalogue" ? null : mode,
    assume: [...offered(), ...(mtp() ? ["mtp"] : [])].join(",") || null,
  });
  const params = () => { const n = Number(size.value); return size.value !== "" && n > 0 && n <= 100000 ? Math.round(n * 1e9) : null; };
  show();

  return { mode: () => mode, entry, base, mtp, params, choice: () => offered().join(","), stamp: () => stamp };
};
