// The two allocators in the reader's hands. What the reader did is a list of actions; the server replays it on its real block pool
// and answers with states. Clicks never race: they join the list, and one request at a time fetches the states still missing.
KV.widgets["paged-attention"] = async (root, props, kv) => {
  "use strict";
  await Promise.all(["badge", "words", "pool", "strips"].map((part) => KV.load(`paged-attention-${part}`)));
  const { el } = kv, words = KV.pagedAttentionWords(kv), RUN_MS = 750, KEY = "play", LONGEST = 1500;
  let actions = [], states = [], epoch = 0, busy = false, player = null, timer = 0, opening = null;

  // The address: n28.64.45 a request, s a step (s3 three), g0.6 growth, f0 a branch, x1 an end; joined by "-".
  const LETTERS = { new: "n", grow: "g", step: "s", fork: "f", finish: "x" }, KINDS = Object.fromEntries(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind]));
  const encode = (list) => list.map(([kind, ...numbers]) => LETTERS[kind] + numbers.join(".")).join("-").replace(/\bs(-s\b)+/g, (run) => `s${(run.length + 1) / 2}`);
  const decode = (text) => {
    const found = text === "" ? [] : text.split("-").flatMap((item) => {
      const numbers = item.slice(1) === "" ? [] : item.slice(1).split(".").map(Number);
      return item[0] === "s" ? Array.from({ length: Math.min(props.maxActions + 1, numbers[0] ?? 1) }, () => ["step"]) : [[KINDS[item[0]], ...numbers]];
    });
    return found.length <= props.maxActions && found.every(([kind, ...numbers]) => kind && numbers.every(Number.isInteger)) ? found : null;
  };

  const stage = el("div", { class: "pa-stage" }), bar = el("div", { class: "pa-bar", role: "group", "aria-label": kv.t("bar") }), form = el("div", { class: "pa-form" });
  const say = el("p", { class: "pa-say", role: "alert" }), left = el("div", { class: "pa-left" }), right = el("div", { class: "pa-right" }), history = el("div", { class: "pa-history" }), strips = el("div", { class: "pa-strips" }), table = el("div"), scenes = el("div", { class: "pa-bar pa-scenes", role: "group", "aria-label": kv.t("scenes") }, el("span", { "aria-hidden": "true" }, kv.t("scenes")));
  const counts = Object.fromEntries(["free", "used", "total", "shared", "unfilled"].map((name) => [name, el("output", { class: "kv-num", "data-out": name })]));
  const blocks = el("p", { class: "pa-blocks" }, kv.t("count-free"), " ", counts.free, " + ", kv.t("count-used"), " ", counts.used, " = ", counts.total, " ", kv.t("count-blocks"),
    el("span", { class: "pa-gap" }), kv.t("count-shared"), " ", counts.shared, el("span", { class: "pa-gap" }), kv.t("count-unfilled"), " ", counts.unfilled);
  const press = (key, onclick, more = {}) => bar.appendChild(el("button", { type: "button", class: `kv-button${key === "new" || key === "step" ? "" : " is-ghost"}`, "data-press": key, onclick, ...more }, kv.t(`press-${key}`)));
  const buttons = { new: press("new", () => arrive()), step: press("step", () => act(["step"])), random: press("random", () => act(random())),
    run: press("run", () => (timer ? rest() : run()), { "aria-pressed": "false" }), undo: press("undo", () => undo()), reset: press("reset", () => restart(props.script)) };
  left.append(el("h3", {}, kv.t("requests-title")));
  right.append(el("h3", {}, kv.t("pool-title")));
  stage.append(left, right);
  scenes.append(...Object.entries(props.scenes).map(([name, scene]) => el("button", { type: "button", class: "pa-small", "data-scene": name, onclick: () => restart(scene.actions, scene.from) }, kv.t(`scene-${name}`))));
  root.append(el("div", { class: "kv-card pa-card-box" }, form, bar, scenes, say, history, strips, stage, blocks, table));

  const controls = kv.controls(form, [
    { name: "prompt", kind: "range", label: kv.t("prompt"), unit: kv.t("unit"), min: 1, max: 95, value: 20 },
    { name: "limit", kind: "select", label: kv.t("limit"), value: 64, choices: props.limits.map((n) => [n, kv.t("limit-choice", { n })]) },
    { name: "stop", kind: "range", label: kv.t("stop"), unit: kv.t("unit"), min: 2, max: 96, value: 36, help: kv.t("stop-help") },
  ], (values, name) => { agree(name); if (name === "limit") redraw(); });
  // A prompt is shorter than the limit, and the end lies between the two.
  function agree(changed) {
    const v = controls.values, within = (n, low, high) => Math.max(low, Math.min(high, n));
    const stop = within(v.stop, changed === "stop" ? 2 : v.prompt + 1, v.limit), prompt = within(v.prompt, 1, (changed === "stop" ? stop : v.limit) - 1);
    Object.assign(controls.input("prompt"), { max: v.limit - 1 });
    Object.assign(controls.input("stop"), { max: v.limit });
    controls.set({ prompt, stop: within(stop, prompt + 1, v.limit) });
  }
  agree("limit");

  const drawPool = KV.pagedAttentionPool(left, right, kv, props, words, (action) => act(action), () => buttons.step.focus());
  const drawStrips = KV.pagedAttentionStrips(strips, table, kv, props, words);
  // Nobody overtakes: the next to get a piece is the first that waits, or else the one that the controls describe.
  const nextLimit = ({ requests, reserved: { waiting } }) => (waiting.length ? requests[waiting[0][0]][0] : controls.values.limit);
  const bornBefore = (n) => actions.slice(0, n).filter(([kind]) => kind === "new" || kind === "fork").length;
  const paint = (n) => {
    const state = states[n], { paged } = state;
    drawPool(state);
    drawStrips(state, nextLimit(state));
    for (const [name, value] of Object.entries({ free: paged.free, used: paged.used, total: paged.free + paged.used, shared: paged.shared, unfilled: paged.unfilled })) counts[name].textContent = String(value);
    root.dataset.shown = n;
  };
  const describe = (n) => words.say(n ? actions[n - 1] : null, bornBefore(n - 1), states[n], states[n - 1]);
  const redraw = () => { if (player) paint(player.index); };
  const show = (follow) => {
    const last = states.length - 1;
    if (!player) player = kv.player(history, { length: states.length, label: kv.t("player"), interval: 1300, draw: paint, describe, start: last });
    else player.setLength(states.length, follow ? last : Math.min(player.index, last));
  };
  const enable = () => {
    const full = actions.length >= props.maxActions;
    for (const name of ["new", "step", "random", "run"]) buttons[name].disabled = full;
    buttons.undo.disabled = actions.length === 0;
    if (full) { rest(); say.textContent = kv.t("full", { n: props.maxActions }); } else if (say.dataset.kind !== "error") say.textContent = "";
    const text = encode(actions);
    KV.state.set({ [KEY]: text === encode(props.script) || text.length > LONGEST ? null : text });
    root.dataset.actions = actions.length;
  };

  // Fetch what is missing. An answer to a list that has been cut meanwhile is thrown away.
  const pump = async () => {
    if (busy) return;
    busy = true;
    while (states.length <= actions.length && root.isConnected) {
      const from = states.length, to = Math.min(actions.length, from + props.maxStates - 1), mine = epoch;
      const answer = (await kv.server.play({ actions: actions.slice(0, to), from, to }).catch(() => undefined)) ?? { status: "error", message: kv.t("no-answer") };
      if (mine !== epoch) continue;
      if (answer.status !== "ready") { failed(answer.message); if (!states.length && !actions.length) break; continue; }
      // A reader who looks at an earlier moment stays there.
      const follow = !player || player.index === from - 1;
      states.push(...answer.states);
      show(follow);
    }
    if (opening !== null && states.length > actions.length) { player.go(opening); player.play(); }
    opening = null;
    busy = false;
  };
  // What was not answered is taken back; with nothing to go back to, a wrong address gives way to the scripted start.
  const failed = (message) => {
    rest();
    say.dataset.kind = "error";
    say.textContent = message;
    epoch += 1;
    actions = states.length ? actions.slice(0, states.length - 1) : encode(actions) === encode(props.script) ? [] : [...props.script];
    enable();
  };
  const cut = (length) => {
    epoch += 1;
    actions.length = length;
    states.length = Math.min(states.length, length + 1);
    if (player && states.length) show(true);
  };
  // Done from an earlier moment, an action replaces what came after that moment.
  const act = (action) => {
    if (!action) return;
    opening = null;
    if (player) player.pause();
    if (player && player.index < states.length - 1) cut(player.index);
    if (actions.length >= props.maxActions) return;
    say.dataset.kind = "";
    actions.push(action);
    enable();
    pump();
  };
  const arrive = () => act(["new", controls.values.prompt, controls.values.limit, controls.values.stop]);
  const undo = () => { rest(); if (player) player.pause(); if (actions.length) cut(actions.length - 1); enable(); pump(); };
  // `from`: play from that moment on; without it, show the end.
  const restart = (list, from = null) => { rest(); if (player) player.pause(); opening = from; epoch += 1; actions = [...list]; states = states.slice(0, 1); say.dataset.kind = ""; enable(); if (player) show(true); pump(); };

  // Something that a busy server would see: mostly steps, now and then an arrival, a branch or an end.
  const random = () => {
    const state = states[player ? player.index : 0], live = Object.keys(state?.requests ?? {}).map(Number), running = Object.keys(state?.paged.tokens ?? {}).map(Number);
    const pick = (items) => items[Math.floor(Math.random() * items.length)], dice = Math.random();
    const stuck = state?.paged.events.some(([kind]) => kind === "full");
    if (!live.length || (dice < 0.22 && live.length < props.maxLive)) {
      const limit = pick(props.limits), prompt = 4 + Math.floor(Math.random() * (limit / 2 - 4));
      return ["new", prompt, limit, prompt + 1 + Math.floor(Math.random() * (limit - prompt))];
    }
    if (stuck && dice < 0.6) return ["finish", pick(running)];
    if (dice < 0.32 && running.length) return ["fork", pick(running)];
    if (dice < 0.5) return ["grow", pick(live), 1 + Math.floor(Math.random() * props.blockSize)];
    return dice < 0.55 ? ["finish", pick(live)] : ["step"];
  };
  const running = (on) => { buttons.run.setAttribute("aria-pressed", String(on)); buttons.run.textContent = kv.t(on ? "press-rest" : "press-run"); };
  const run = () => {
    timer = setInterval(() => {
      if (!root.isConnected || document.hidden) return rest();
      if (!busy) act(random());
    }, RUN_MS);
    running(true);
    act(random());
  };
  function rest() { clearInterval(timer); timer = 0; running(false); }

  const wanted = KV.state.get(KEY);
  actions = (wanted === null ? null : decode(wanted)) ?? [...props.script];
  enable();
  await pump();
};
