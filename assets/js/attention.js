// Query, Key and Value on the real model. One request a sentence and one a head; everything else happens here.
KV.widgets.attention = async (root, props, kv) => {
  "use strict";
  const { el } = KV;
  await Promise.all(["draw", "math", "form", "pick", "lookup", "sums", "maps"].map((part) => KV.load(`attention-${part}`)));
  const draw = KV.attention, math = KV.attentionMath;
  const MOST_HEADS = 48, WAIT_MS = 1000, LONGEST_IN_ADDRESS = 300;

  const badge = el("span", { class: "kv-badge kv-measured" }, el("span", { class: "kv-badge-mark", "aria-hidden": "true" }, props.measured.mark), props.measured.word);
  let reading = null, head = null, latest = 0, wanted = null, fetching = false, heads = new Map(), parts = null;
  const chosen = { layer: 0, head: 0, token: 0, key: 0, dim: 0 };

  const form = KV.attentionForm(root, props, kv, (choice) => read(choice));
  const stage = el("div", { class: "kv-attn-stage", hidden: true, "aria-busy": "false" });
  root.append(stage);

  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  // Ask until there is an answer; null when it failed (and the reader was told) or was overtaken by a newer question.
  const ask = async (name, question, stillWanted) => {
    for (;;) {
      // Gradio's client gives undefined where the server did not answer.
      const answer = (await kv.server[name](question).catch(() => undefined)) ?? { status: "error", message: kv.t("no-answer") };
      if (!stillWanted() || !root.isConnected) return null;
      if (answer.status === "ready") return answer;
      form.say(answer.message, answer.status === "error");
      if (answer.status === "error") return null;
      question = { ...question, again: false };
      await pause(WAIT_MS);
    }
  };

  async function read(choice, again = true) {
    const turn = (latest += 1);
    form.say(kv.t("reading"));
    stage.setAttribute("aria-busy", "true");
    const answer = await ask("read_sentence", { text: choice.text, again }, () => turn === latest);
    if (turn !== latest) return;
    stage.setAttribute("aria-busy", "false");
    if (!answer) return;
    reading = { ...answer, sinks: draw.floats(answer.sinks) };
    heads = new Map();
    head = null;
    const last = reading.tokens.length - 1;
    Object.assign(chosen, {
      layer: within(choice.layer ?? chosen.layer, reading.layers), head: within(choice.head ?? chosen.head, reading.heads),
      token: choice.token === undefined ? last : Math.min(choice.token, last), key: null,
    });
    form.say(kv.t("ready", { tokens: reading.tokens.length, model: reading.model, dtype: reading.dtype, device: reading.device }));
    stage.hidden = false;
    parts ??= build();
    parts.pick.showTokens(reading.tokens);
    remember();
    draw.reading = reading;
    dispatchEvent(new CustomEvent("kv-attention", { detail: reading }));
    await fetchHead();
  }
  const within = (value, count) => Math.min(Math.max(0, value), count - 1);

  function build() {
    const box = (name) => stage.appendChild(el("div", { class: name }));
    const pick = KV.attentionPick(box("kv-attn-choices"), kv, reading, chosen, choose);
    const views = box("kv-attn-views");
    const left = views.appendChild(el("div", { class: "kv-attn-left" })), right = views.appendChild(el("div", { class: "kv-attn-right" }));
    const lookup = KV.attentionLookup(left, kv, (key) => { chosen.key = key; show(); });
    const maps = KV.attentionMaps(right, kv, badge, choose);
    const sums = KV.attentionSums(left, right, kv, badge, (dim) => { chosen.dim = dim; show(); });
    KV.onTheme(root, () => { if (head) show(); });
    let width = 0;
    new ResizeObserver(() => { if (head && stage.clientWidth !== width) { width = stage.clientWidth; show(); } }).observe(stage);
    return { pick, lookup, sums, maps };
  }

  // A choice made by the reader: a token is drawn at once, a layer or a head may need a request.
  function choose(change) {
    const other = (change.layer ?? chosen.layer) !== chosen.layer || (change.head ?? chosen.head) !== chosen.head;
    Object.assign(chosen, change);
    if (change.token !== undefined) chosen.key = null;
    remember();
    if (other || !head) fetchHead(); else show();
  }

  // The newest choice wins: while a request is under way only the last wish is kept.
  async function fetchHead() {
    parts.pick.show(chosen);
    wanted = { layer: chosen.layer, head: chosen.head };
    if (fetching) return;
    fetching = true;
    while (wanted) {
      const asked = wanted, source = reading, name = `${asked.layer}.${asked.head}`;
      wanted = null;
      if (!heads.has(name)) {
        const answer = await ask("read_head", { text: source.text, ...asked }, () => true);
        if (answer && source === reading) keep(name, answer);
      }
      if (source === reading && heads.has(name) && !wanted) use(heads.get(name));
      else if (source !== reading) wanted ??= { layer: chosen.layer, head: chosen.head };
    }
    fetching = false;
  }

  function keep(name, answer) {
    const data = { length: answer.length, dim: answer.dim };
    for (const part of ["q", "k", "v", "scores", "weights", "output"]) data[part] = draw.floats(answer[part]);
    if (heads.size >= MOST_HEADS) heads.delete(heads.keys().next().value);
    heads.set(name, data);
  }

  function use(data) {
    head = data;
    chosen.key = null;
    parts.lookup.build(reading.tokens, head);
    // The first head opens at the dimension where its output is largest; after that the reader's choice stays.
    chosen.dim = parts.sums.dimensions(head.dim, () => largestAt(math.row(head.output, chosen.token, head.dim)));
    parts.sums.verify(head, reading.dtype);
    show();
  }

  function show() {
    const result = math.lookup(head, chosen.token);
    chosen.key ??= strongest(result.weights);
    chosen.key = Math.min(chosen.key, chosen.token);
    parts.pick.show(chosen);
    parts.lookup.show(reading.tokens, head, chosen, result);
    parts.sums.show(reading.tokens, head, chosen, result);
    parts.maps.show(reading, head, chosen);
    stage.dataset.shown = `${chosen.layer}.${chosen.head}.${chosen.token}`;
  }
  const largestAt = (values) => values.reduce((best, value, index) => (Math.abs(value) > Math.abs(values[best]) ? index : best), 0);
  // The token that weighs most, the sink aside.
  const strongest = (weights) => weights.reduce((best, weight, index) => (index && weight > (best ? weights[best] : -1) ? index : best), 0);

  const start = props.examples[props.first];
  function remember() {
    const same = reading.text === start.text;
    const last = reading.tokens.length - 1;
    KV.state.set({
      text: same || reading.text.length > LONGEST_IN_ADDRESS ? null : reading.text,
      layer: same && chosen.layer === start.layer ? null : chosen.layer, head: same && chosen.head === start.head ? null : chosen.head,
      token: chosen.token === last ? null : chosen.token,
    });
  }
  const number = (key) => (/^\d{1,4}$/.test(KV.state.get(key) ?? "") ? Number(KV.state.get(key)) : undefined);
  const text = KV.state.get("text");
  const first = text === null ? { ...start } : { text };
  for (const key of ["layer", "head", "token"]) first[key] = number(key) ?? first[key];
  form.set(first.text);
  // Not awaited: the page is ready before the model is.
  read({ ...first, layer: first.layer ?? start.layer, head: first.head ?? start.head }, false);
};
