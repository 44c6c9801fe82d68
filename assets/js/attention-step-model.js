// Prefill and decode as a list of frames, and what each frame's counters say. Numbers only, no drawing.
KV.attentionSteps = (() => {
  "use strict";

  // `prompt` tokens are given, `made` tokens are generated: the first by the prefill, each other one by a decode step.
  const frames = (prompt, made) => {
    const list = [{ kind: "prompt", step: 0 }, { kind: "prefill", step: 0 }, { kind: "first", step: 0 }];
    for (let step = 1; step < made; step += 1) {
      for (const kind of ["input", "read", "sample"]) list.push({ kind, step });
    }
    return list;
  };

  // What is true at the end of a frame.
  //   visible: tokens of the text so far; cached: tokens whose K and V are kept; input: position processed now, or -1
  //   now / total: tokens run through the model in this step and since the start, with a cache and without one
  const state = (prompt, frame) => {
    const { kind, step } = frame;
    if (kind === "prompt") {
      return { visible: prompt, cached: 0, input: -1, now: { cache: 0, plain: 0 }, total: { cache: 0, plain: 0 } };
    }
    const done = kind === "sample" || kind === "first";
    let plain = 0;
    for (let each = 0; each <= step; each += 1) plain += prompt + each;
    return {
      visible: prompt + step + (done ? 1 : 0),
      cached: kind === "input" ? prompt + step - 1 : prompt + step,
      input: step === 0 ? -1 : prompt + step - 1,
      now: { cache: step === 0 ? prompt : 1, plain: prompt + step },
      total: { cache: prompt + step, plain },
    };
  };

  return { frames, state };
})();
