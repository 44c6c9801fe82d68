// The sentence: a text box, examples, and one line that says what happens.
KV.attentionForm = (root, props, kv, onRead) => {
  "use strict";
  const { el } = KV;
  const id = KV.unique();
  const box = el("textarea", {
    id, rows: 2, maxlength: props.maxChars + 1, autocomplete: "off", spellcheck: "false", dir: "auto", "aria-describedby": `${id}-help`,
    onkeydown: (event) => {
      // Enter reads; Shift+Enter writes a new line.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); onRead({ text: box.value }); }
    },
  });
  const button = el("button", { type: "submit", class: "kv-button" }, kv.t("read"));
  const examples = props.examples.map((example) => el("button", {
    type: "button", class: "kv-attn-example",
    onclick: () => { box.value = example.text; onRead(example); },
  }, kv.t(`example-${example.name}`)));
  const status = el("p", { class: "kv-note kv-attn-status", role: "status" });
  root.append(
    el("form", { class: "kv-controls kv-attn-form", onsubmit: (event) => { event.preventDefault(); onRead({ text: box.value }); } },
      el("div", { class: "kv-control-label" }, el("label", { for: id }, kv.t("sentence"))),
      el("div", { class: "kv-attn-sentence" }, box, button),
      el("div", { class: "kv-attn-examples" }, el("span", { class: "kv-note" }, kv.t("examples")), examples),
      el("p", { class: "kv-note", id: `${id}-help` }, kv.t("sentence-help", { tokens: props.maxTokens }))),
    status);
  return {
    set: (text) => { box.value = text; },
    say: (text, wrong = false) => {
      status.textContent = text;
      status.classList.toggle("kv-failed", wrong);
      box.setAttribute("aria-invalid", String(wrong));
    },
  };
};
