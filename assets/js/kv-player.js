// KV.player(root, options): the controls of an animation; the drawing is yours.
//
//   const player = KV.player(root, {
//     length: 12, label: "Decode, step by step",
//     draw: (i) => paint(i),                       // called for every position, 0 to length - 1
//     describe: (i) => `Token ${i} is appended`,   // the position in words: shown below and read out
//     interval: 900, loop: false, start: 0, key: "step", autoplay: false,
//   });
//   player.go(3)  player.play()  player.pause()  player.index  player.setLength(20)  player.element
//
// Space plays and pauses, arrows step, Home and End jump, while anything inside has the focus. With reduced motion nothing
// starts by itself; Play still works, because it was asked for. It stops when it leaves the page or its tab is hidden.
KV.player = (root, options) => {
  const { el } = KV;
  const { draw, describe, label, interval = 900, loop = false, key = null } = options;
  let length = options.length, index = 0, timer = 0;

  const button = (name, mark, onclick) => el("button", { type: "button", class: "kv-play-button", "aria-label": KV.frame(name), title: KV.frame(name), onclick }, mark);
  const back = button("player.back", "◂", () => step(-1));
  const toggle = button("player.play", "▶", () => (timer ? pause() : play()));
  const on = button("player.forward", "▸", () => step(1));
  toggle.setAttribute("aria-pressed", "false");
  const scrub = el("input", { type: "range", min: 0, max: length - 1, step: 1, value: 0, "aria-label": `${label}: ${KV.frame("player.position")}`, oninput: () => { pause(); go(Number(scrub.value)); } });
  const count = el("span", { class: "kv-play-count kv-num" });
  const live = el("output", { class: "kv-play-text", "aria-live": "polite" });
  const element = el("div", { class: "kv-player", role: "group", "aria-label": label },
    el("div", { class: "kv-play-bar" }, back, toggle, on, scrub, count), live);

  const go = (wanted) => {
    index = Math.max(0, Math.min(length - 1, Math.round(wanted)));
    draw(index);
    const words = describe(index);
    scrub.value = index;
    scrub.setAttribute("aria-valuetext", words);
    count.textContent = `${index + 1} / ${length}`;
    // While it runs, every step would be read out over the last one; the words still change on screen.
    live.setAttribute("aria-live", timer ? "off" : "polite");
    live.textContent = words;
    back.disabled = index === 0;
    on.disabled = index === length - 1;
    if (key) KV.state.set({ [key]: index === (options.start || 0) ? null : index });
    element.dataset.index = index;
  };
  const step = (by) => { pause(); go(index + by); };
  const show = (playing) => {
    const name = KV.frame(playing ? "player.pause" : "player.play");
    toggle.textContent = playing ? "❚❚" : "▶";
    toggle.setAttribute("aria-pressed", String(playing));
    toggle.setAttribute("aria-label", name);
    toggle.title = name;
  };
  const pause = () => {
    if (!timer) return;
    clearInterval(timer);
    timer = 0;
    show(false);
    live.setAttribute("aria-live", "polite");
  };
  const tick = () => {
    if (!element.isConnected || document.hidden) return pause();
    if (index < length - 1) go(index + 1);
    else if (loop) go(0);
    if (index === length - 1 && !loop) pause();
  };
  const play = () => {
    if (timer || length < 2) return;
    timer = setInterval(tick, interval);
    show(true);
    go(index === length - 1 ? 0 : index);
  };

  element.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: length - 1 };
    const button = event.target.closest("button");
    if (event.key === " " && !button) { event.preventDefault(); if (timer) pause(); else play(); }
    else if (event.key in moves) { event.preventDefault(); pause(); go(moves[event.key]); }
  });
  document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); });

  root.append(element);
  const wanted = key ? Number(KV.state.get(key) ?? NaN) : NaN;
  go(Number.isInteger(wanted) && wanted >= 0 && wanted < length ? wanted : options.start || 0);
  if (options.autoplay && !KV.calm()) play();

  return {
    element, go, play, pause, step,
    get index() { return index; },
    get playing() { return timer !== 0; },
    setLength: (wantedLength, position) => { length = wantedLength; scrub.max = length - 1; go(position === undefined ? index : position); },
  };
};
