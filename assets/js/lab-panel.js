// The lab panel (pages/_lab_panel.py): controls, Measure and Stop, and what comes back. Settings live in the address.
//
// props.declared, once: {lab, title, question, expect, source, controls, columns, command}. Afterwards each new value of the
// component is a state of a run, complete in itself: {run, phase, text, beat, done, total, rows, figure, error, ...}.
KV.widgets["lab-panel"] = async function (root, props, kv) {
  "use strict";
  await KV.load("lab-panel-result");
  const { el } = KV, { t } = kv, lab = props.declared;
  const SILENCE_MS = 15000; // the server speaks every half second, a busy one every few
  const ids = { title: KV.unique(), error: KV.unique() };

  // Not `disabled`: a button that has the focus would lose it.
  const able = (button, yes) => (yes === undefined ? button.getAttribute("aria-disabled") !== "true" : button.setAttribute("aria-disabled", !yes));
  const measure = el("button", { type: "button", class: "kv-button lab-measure", onclick: () => able(measure) && start() }, t("measure"));
  const stop = el("button", { type: "button", class: "kv-button is-ghost lab-stop", onclick: () => able(stop) && halt() }, t("stop"));
  const link = el("a", { class: "lab-link" }, t("link"));
  const command = el("code", { class: "lab-command" });
  const expected = el("p", { class: "kv-note lab-expected" });
  const status = el("p", { class: "lab-status", role: "status", "aria-live": "polite" });
  const bar = el("progress", { class: "lab-progress", max: 1, hidden: true, "aria-label": t("phase.running") });
  const error = el("p", { class: "lab-error kv-failed", role: "alert", id: ids.error });
  const side = el("div", { class: "lab-side" });
  const result = KV.labResult(lab, kv);

  root.append(el("section", { class: "lab", "aria-labelledby": ids.title },
    el("header", { class: "lab-head" }, el("h3", { id: ids.title }, lab.title), el("p", { class: "lab-question" }, lab.question)),
    el("div", { class: "lab-body" }, side, result.element),
    el("footer", { class: "lab-foot" },
      el("p", {}, el("b", {}, t("expect")), " ", lab.expect),
      el("p", { class: "kv-note" }, t("source", { source: lab.source })))));
  const controls = KV.controls(side, lab.controls, () => changed(), { legend: t("controls") });
  side.append(expected, el("div", { class: "lab-buttons" }, measure, stop), bar, status, error,
    el("p", { class: "kv-note lab-elsewhere" }, link),
    el("details", { class: "kv-note" }, el("summary", {}, t("command")), command));

  // Settings: the link and the command carry all of them, defaults too, so that they mean the same later.
  let asking = 0, timer = null;
  function changed() {
    const url = new URL(location);
    for (const spec of lab.controls) url.searchParams.set(spec.key, String(controls.values[spec.name]));
    url.hash = lab.anchor;
    link.href = url.href;
    command.textContent = [lab.command, ...lab.controls.map((spec) => `--set ${quoted(`${spec.name}=${controls.values[spec.name]}`)}`)].join(" ");
    clearTimeout(timer);
    timer = setTimeout(ask, 200);
  }
  const quoted = (word) => (/^[\w.=,:+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  async function ask() {
    const mine = ++asking;
    try {
      const plan = await kv.server.plan({ ...controls.values });
      if (mine !== asking || !root.isConnected) return;
      expected.textContent = plan.text;
      expected.classList.toggle("kv-failed", plan.wrong);
    } catch { expected.textContent = ""; } // the next change asks again, and Measure says what is wrong
  }

  // A run: the page makes its id, so that only this page can stop it.
  let run = null, watchdog = null, rows = 0;
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  function start() {
    run = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    rows = 0;
    error.textContent = "";
    say(t("phase.starting"));
    busy(true);
    result.begin();
    alive();
    kv.trigger("submit", { run, values: { ...controls.values } });
  }
  async function halt() {
    say(t("phase.stopping"));
    able(stop, false);
    const stopped = await kv.server.end_run(run).catch(() => false);
    if (!stopped && run) { // it had not begun: take it out of the queue
      kv.trigger("stop");
      finish(t(rows ? "phase.stopped-rows" : "phase.stopped"));
    }
  }
  function busy(yes) {
    able(measure, !yes);
    able(stop, yes);
    bar.hidden = !yes;
    bar.removeAttribute("value");
    result.element.setAttribute("aria-busy", yes);
    root.dataset.busy = yes ? "1" : "0";
  }
  function finish(text, line = "") {
    clearTimeout(watchdog);
    const focused = document.activeElement === stop;
    run = null;
    busy(false);
    say(text);
    error.textContent = line;
    result.end();
    measure.textContent = t("again");
    if (focused) measure.focus({ preventScroll: true });
  }
  // Silence may be a slow network or a busy browser: say so and offer a new run, but go on if the server speaks again.
  function alive() {
    clearTimeout(watchdog);
    if (error.textContent === t("phase.lost")) {
      error.textContent = "";
      busy(true);
    }
    watchdog = setTimeout(() => {
      if (!run) return;
      error.textContent = t("phase.lost");
      able(measure, true);
    }, SILENCE_MS);
  }

  kv.onProps((state) => {
    if (!run || !state || (state.run !== run && state.phase !== "refused")) return;
    alive();
    rows = state.rows.length;
    if (rows) result.show(state);
    if (state.phase === "running" && state.total) bar.value = state.done / state.total;
    if (["done", "stopped", "failed"].includes(state.phase)) finish(state.text, state.error || "");
    else if (state.phase === "refused") finish(t("phase.failed"), state.error);
    else if (able(stop)) say(state.text);
  });

  busy(false);
  changed();
  // The panel was not there yet when the browser looked for the anchor.
  if (location.hash === `#${lab.anchor}`) requestAnimationFrame(() => root.scrollIntoView());
};
