// KV.controls(root, declaration, onChange, options): native controls with label, unit and output, tied to the address.
//
//   const c = KV.controls(root, [
//     { name: "tokens", kind: "range", label: "Context", unit: "tokens", min: 1, max: 131072, value: 4096, scale: "log2" },
//     { name: "batch", kind: "number", label: "Requests", min: 1, max: 512, value: 1 },
//     { name: "dtype", kind: "select", label: "dtype", value: "bf16", choices: [["bf16", "bf16 (2 B)"], ["int8", "int8 (1 B)"]] },
//     { name: "text", kind: "text", label: "Prompt", value: "Hello", maxLength: 200 },
//     { name: "weights", kind: "check", label: "Count the weights", value: true },
//   ], (values, name) => draw(values));
//   c.values.tokens   c.set({ tokens: 8192 })   c.element
//
// Each entry: name, kind, label, value; range and number: min, max, step (default 1), unit, unitOfOne, format(value) for the output;
// scale "log2" walks the powers of two, with `perOctave` steps between two of them (default 1), and has a number box for
// every value in between; help: one line more; key: its name in the address, or false to keep it out. A value from the
// address that is not allowed is ignored. `set` does not call onChange; options: {legend, group: true} puts a fieldset round.
KV.controls = (root, declaration, onChange, options = {}) => {
  const { el } = KV;
  const values = {}, parts = {};

  const clean = (spec, raw) => {
    if (raw === null || raw === undefined) return undefined;
    if (spec.kind === "select") return choices(spec).map(([value]) => value).find((value) => String(value) === String(raw));
    if (spec.kind === "check") return raw === true || raw === "true" ? true : raw === false || raw === "false" ? false : undefined;
    if (spec.kind === "text") return String(raw).slice(0, spec.maxLength || 1000);
    const number = raw === "" ? NaN : Number(raw), step = spec.step || 1;
    if (!Number.isFinite(number) || number < spec.min || number > spec.max) return undefined;
    const snapped = spec.scale === "log2" ? Math.round(number / step) * step : spec.min + Math.round((number - spec.min) / step) * step;
    return Math.min(spec.max, Math.max(spec.min, Number(snapped.toFixed(9))));
  };
  const choices = (spec) => spec.choices.map((item) => (Array.isArray(item) ? item : [item, String(item)]));
  const unitOf = (spec, value) => (value === 1 && spec.unitOfOne) || spec.unit;
  const shown = (spec, value) => (spec.format ? spec.format(value) : `${KV.number(value)}${spec.unit ? ` ${unitOf(spec, value)}` : ""}`);
  const key = (spec) => (spec.key === undefined ? spec.name : spec.key);

  const change = (spec, raw, from) => {
    const value = clean(spec, raw);
    if (value === undefined) return;
    values[spec.name] = value;
    parts[spec.name].show(value, from);
    if (key(spec)) KV.state.set({ [key(spec)]: value === spec.value ? null : value });
    if (onChange) onChange(values, spec.name);
  };

  // A slider in log2 holds an exponent in steps of 1/perOctave; its ends are min and max exactly.
  const position = (spec) => {
    if (spec.scale !== "log2") return { min: spec.min, max: spec.max, step: spec.step || 1, to: (v) => v, from: (p) => p };
    const per = spec.perOctave || 1, low = Math.log2(spec.min), high = Math.log2(spec.max);
    return {
      min: 0, max: Math.ceil((high - low) * per - 1e-9), step: 1,
      to: (v) => Math.round((Math.log2(v) - low) * per),
      from: (p) => Math.min(spec.max, Math.round(2 ** (low + p / per))),
    };
  };

  const range = (spec, id) => {
    const at = position(spec);
    const slider = el("input", { type: "range", id, min: at.min, max: at.max, step: at.step, oninput: () => change(spec, at.from(Number(slider.value)), slider) });
    const output = el("output", { for: id, class: "kv-num" });
    const exact = spec.scale === "log2" || spec.exact ? number(spec, `${id}-exact`, KV.frame("control.exact", { label: spec.label })) : null;
    return {
      input: slider, nodes: [el("div", { class: "kv-control-row" }, slider, exact && exact.input)], output,
      show: (value, from) => {
        if (from !== slider) slider.value = at.to(value);
        slider.setAttribute("aria-valuetext", shown(spec, value));
        output.textContent = shown(spec, value);
        if (exact) exact.show(value, from);
      },
    };
  };

  function number(spec, id, name) {
    const input = el("input", {
      type: "number", id, min: spec.min, max: spec.max, step: spec.step || 1, inputmode: "decimal", "aria-label": name,
      oninput: () => { input.toggleAttribute("data-wrong", clean(spec, input.value) === undefined); change(spec, input.value, input); },
      onblur: () => { input.removeAttribute("data-wrong"); input.value = values[spec.name]; },
    });
    return { input, nodes: [input], show: (value, from) => { if (from !== input) input.value = value; } };
  }

  const select = (spec, id) => {
    const input = el("select", { id, onchange: () => change(spec, input.value, input) },
      choices(spec).map(([value, label]) => el("option", { value }, label)));
    return { input, nodes: [input], show: (value) => { input.value = value; } };
  };
  const text = (spec, id) => {
    const input = el(spec.rows ? "textarea" : "input", {
      type: spec.rows ? null : "text", id, rows: spec.rows, maxlength: spec.maxLength || 1000, autocomplete: "off", spellcheck: "false",
      oninput: () => change(spec, input.value, input),
    });
    return { input, nodes: [input], show: (value, from) => { if (from !== input) input.value = value; } };
  };
  const check = (spec, id) => {
    const input = el("input", { type: "checkbox", id, onchange: () => change(spec, input.checked, input) });
    return { input, nodes: [input], show: (value) => { input.checked = value; } };
  };
  const kinds = { range, number: (spec, id) => number(spec, id), select, text, check };

  const box = options.legend ? el("fieldset", { class: "kv-controls" }, el("legend", {}, options.legend)) : el("div", { class: "kv-controls" });
  for (const spec of declaration) {
    if (!kinds[spec.kind]) throw new Error(`control "${spec.name}": unknown kind "${spec.kind}"`);
    const id = KV.unique(), part = (parts[spec.name] = kinds[spec.kind](spec, id));
    part.input.dataset.control = spec.name;
    const unit = spec.kind === "number" && spec.unit ? ` (${spec.unit})` : "";
    const label = el("div", { class: "kv-control-label" }, el("label", { for: id }, spec.label + unit), part.output);
    const help = spec.help ? el("p", { class: "kv-note", id: `${id}-help` }, spec.help) : null;
    if (help) part.input.setAttribute("aria-describedby", help.id);
    box.append(el("div", { class: `kv-control kv-control--${spec.kind}` },
      spec.kind === "check" ? [...part.nodes, label, help] : [label, ...part.nodes, help]));
    const start = clean(spec, key(spec) ? KV.state.get(key(spec)) : null);
    values[spec.name] = start === undefined ? spec.value : start;
    part.show(values[spec.name]);
  }
  root.append(box);

  return {
    element: box,
    values,
    input: (name) => parts[name].input,
    set: (changes) => {
      for (const spec of declaration) {
        const value = Object.hasOwn(changes, spec.name) ? clean(spec, changes[spec.name]) : undefined;
        if (value === undefined) continue;
        values[spec.name] = value;
        parts[spec.name].show(value);
        if (key(spec)) KV.state.set({ [key(spec)]: value === spec.value ? null : value });
      }
    },
  };
};
