// The browser's side of every page: window.KV. What a page author can use, with one example each:
//
//   KV.widgets["name"] = function (root, props, kv) {...}   a widget (assets/js/name.js), mounted by pages._explorable
//        kv.t("key", {n: 3})  a string of the page, {n} filled in; a missing key throws
//        kv.onProps(fn)       fn(newProps) when an event in Python sets the widget's props
//        kv.server.f(x)       a Python function given to explorable(server_functions=[f]); returns a promise
//        kv.controls, kv.player, kv.plot, kv.state, kv.lang   as below
//   KV.el("p", {class: "kv-note"}, "text", node)            an element; text is text, never markup
//   KV.svg("rect", {x: 0, width: 8, fill: "var(--q)"})      the same for SVG
//   KV.controls(root, [{name, kind, label, ...}], onChange)  native controls tied to the address (kv-controls.js)
//   KV.player(root, {length, draw, describe, label})         play, pause, step, scrub (kv-player.js)
//   KV.plot(host, {data, layout, frames})                    a Plotly figure (kv-plot.js)
//   KV.state.get("tokens"); KV.state.set({tokens: 4096})     the address's query, without a reload (kv-state.js)
//   KV.bytes(1073741824) "1.00 GiB"; KV.decimalBytes(1e9) "1.00 GB"; KV.number(12345) "12,345"   (kv-format.js)
//   KV.css("--q")           a colour of the style sheet as it is now; KV.onTheme(root, fn) when light or dark changes
//   KV.calm()               whether the reader asked for less motion
//   KV.load("name")         a promise for another script of assets/js
window.KV = (() => {
  "use strict";
  const boot = window.KV_BOOT;
  const loading = new Map();
  const quiet = matchMedia("(prefers-reduced-motion: reduce)");

  const build = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === false || value === null || value === undefined) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  };
  const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  const t = (strings, key, values) => {
    if (!Object.hasOwn(strings, key)) throw new Error(`no string "${key}"`);
    return strings[key].replace(/\{(\w+)\}/g, (whole, name) =>
      values && Object.hasOwn(values, name) ? String(values[name]) : whole);
  };

  const load = (name) => {
    if (!loading.has(name)) {
      const src = boot.scripts[name];
      loading.set(name, new Promise((resolve, reject) => {
        if (!src) return reject(new Error(`no script "${name}"`));
        const script = el("script", { src, onload: resolve, onerror: () => reject(new Error(`script "${name}" did not load`)) });
        document.head.append(script);
      }));
    }
    return loading.get(name);
  };

  const onTheme = (root, fn) => {
    const listener = () => (root.isConnected ? fn() : removeEventListener("kv-theme", listener));
    addEventListener("kv-theme", listener);
  };

  const unique = ((count) => () => `kv-${++count}`)(0);

  // Called by pages/_explorable.py, once for each widget in the page.
  const mount = async (element, props, watch, server, trigger) => {
    const root = element.querySelector(".kv-widget");
    const { name, strings } = props.widget;
    const listeners = [];
    watch("value", () => listeners.forEach((fn) => fn(props.value)));
    try {
      await load(name);
      if (!KV.widgets[name]) throw new Error(`assets/js/${name}.js does not define KV.widgets["${name}"]`);
      const kv = {
        ...KV, strings, server, trigger, element,
        t: (key, values) => t(strings, key, values),
        onProps: (fn) => listeners.push(fn),
      };
      await KV.widgets[name](root, props.value, kv);
      root.dataset.ready = "1";
    } catch (error) {
      console.error(`widget ${name}:`, error);
      root.append(el("p", { class: "kv-failed", role: "alert" }, t(boot.strings, "state.failed")));
    }
  };

  return {
    lang: boot.lang, widgets: {}, el, svg, load, mount, unique, onTheme,
    t, frame: (key, values) => t(boot.strings, key, values),
    css: (name) => getComputedStyle(document.body).getPropertyValue(name).trim(),
    calm: () => quiet.matches,
  };
})();
