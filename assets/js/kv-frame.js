// The frame: theme switch, language switch that keeps the query, contents on a phone, skip link.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("kv-theme"); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem("kv-theme", value); } catch { /* a private window may refuse */ } };
  const button = document.getElementById("kv-theme");

  const show = (theme) => {
    const changed = root.dataset.theme !== theme;
    root.dataset.theme = theme;
    for (const node of [root, document.body]) {
      if (node.classList.contains("dark") !== (theme === "dark")) node.classList.toggle("dark", theme === "dark");
    }
    button.textContent = button.dataset[theme === "dark" ? "light" : "dark"];
    if (changed) dispatchEvent(new Event("kv-theme"));
  };
  button.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    remember(theme);
    // An address that names a theme would win over the choice just made.
    if (KV.state.get("__theme")) KV.state.set({ __theme: theme });
    show(theme);
  });
  system.addEventListener("change", () => {
    if (!stored() && !KV.state.get("__theme")) show(system.matches ? "dark" : "light");
  });
  // Gradio sets the body's class from the address or the system alone; put ours back before the next paint.
  new MutationObserver(() => show(root.dataset.theme)).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  show(root.dataset.theme);

  const keepQuery = (event) => {
    const url = new URL(event.currentTarget.getAttribute("href"), location);
    url.search = location.search;
    event.currentTarget.href = url;
  };
  for (const link of document.querySelectorAll("a[data-keep-query]")) {
    for (const kind of ["pointerdown", "focus", "click"]) link.addEventListener(kind, keepQuery);
  }

  const menu = document.getElementById("kv-menu");
  const open = (yes) => { menu.setAttribute("aria-expanded", String(yes)); root.toggleAttribute("data-menu", yes); };
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.getAttribute("aria-expanded") === "true") { open(false); menu.focus(); }
  });
})();
