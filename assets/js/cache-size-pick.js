// A text box that searches a list and takes one of its entries (the "combobox" pattern of WAI-ARIA): type to narrow it down,
// arrow keys to walk, Enter to take, Escape to leave it as it was. KV.cacheSizePick(kv, items, onPick) -> { element, input, show(name) };
// an item is { name, title, note, words }: every word typed must occur in `words`.
KV.cacheSizePick = (kv, items, onPick) => {
  "use strict";
  const { el } = kv, id = kv.unique(), byName = new Map(items.map((item) => [item.name, item]));
  let shown = null, found = [], active = -1;

  const list = el("ul", { class: "cs-options", role: "listbox", id: `${id}-list`, "aria-label": kv.t("model"), hidden: true });
  const count = el("span", { class: "kv-sr", role: "status" });
  const input = el("input", {
    type: "text", id, role: "combobox", autocomplete: "off", spellcheck: "false", maxlength: 80, "data-control": "model",
    "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", "aria-describedby": `${id}-help`,
  });
  const element = el("div", { class: "kv-control cs-pick" },
    el("div", { class: "kv-control-label" }, el("label", { for: id }, kv.t("model"))), input, list, count,
    el("p", { class: "kv-note", id: `${id}-help` }, kv.t("pick-help", { n: items.length })));

  const matching = (text) => {
    const words = text.trim().toLowerCase().split(/\s+/);
    return items.filter((item) => words.every((word) => item.words.includes(word)));
  };
  const option = (item, index) => el("li", {
    role: "option", id: `${id}-${index}`, "aria-selected": "false", "data-name": item.name,
    // Before the box loses the focus.
    onpointerdown: (event) => { event.preventDefault(); take(item); },
  }, el("span", {}, item.title), el("span", { class: "kv-note" }, item.note));

  const open = (text) => {
    found = matching(text);
    active = -1;
    list.replaceChildren(...(found.length ? found.map(option) : [el("li", { class: "kv-note", role: "option", "aria-disabled": "true", "aria-selected": "false" }, kv.t("pick-none"))]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    count.textContent = kv.t("pick-count", { n: found.length });
    walk(found.findIndex((item) => item === shown));
  };
  const close = () => {
    list.hidden = true;
    count.textContent = "";
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    input.value = shown ? shown.title : "";
  };
  const walk = (to) => {
    if (active >= 0) list.children[active].setAttribute("aria-selected", "false");
    active = to;
    if (active < 0) return input.removeAttribute("aria-activedescendant");
    const node = list.children[active];
    node.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", node.id);
    // Inside the list only: the page stays where it is.
    list.scrollTop = Math.min(node.offsetTop, Math.max(list.scrollTop, node.offsetTop + node.offsetHeight - list.clientHeight));
  };
  const take = (item) => {
    shown = item;
    close();
    onPick(item.name);
  };

  const KEYS = {
    ArrowDown: () => (list.hidden ? open("") : walk((active + 1) % found.length)),
    ArrowUp: () => (list.hidden ? open("") : walk((active <= 0 ? found.length : active) - 1)),
    Enter: () => { if (!list.hidden && found.length) take(found[Math.max(active, 0)]); },
    Escape: () => { if (!list.hidden) close(); },
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Tab") close();
    if (!Object.hasOwn(KEYS, event.key) || (event.key.startsWith("Arrow") && !list.hidden && !found.length)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("pointerup", (event) => { if (list.hidden) { event.preventDefault(); input.select(); open(""); } });
  input.addEventListener("input", () => open(input.value));
  input.addEventListener("blur", close);

  return { element, input, show: (name) => { shown = byName.get(name) || null; input.value = shown ? shown.title : ""; input.dataset.value = name || ""; } };
};
