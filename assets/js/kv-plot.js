// KV.plot(host, {data, layout, frames, config}, {height, label}): a Plotly figure, drawn again on the same node so that zoom is
// kept; colours written "var(--name)" follow light and dark. plotly.js is loaded on first use. Returns a promise of the host.
(() => {
  "use strict";
  const ZH = {
    moduleType: "locale", name: "zh-CN", format: {},
    dictionary: {
      "Zoom": "缩放", "Pan": "平移", "Box Select": "框选", "Lasso Select": "套索选择", "Zoom in": "放大", "Zoom out": "缩小",
      "Autoscale": "自动缩放", "Reset axes": "重置坐标轴", "Reset": "重置", "Download plot as a PNG": "下载 PNG", "Download plot as a png": "下载 PNG",
      "Download plot": "下载图片", "Double-click to zoom back out": "双击恢复原范围", "Taking snapshot - this may take a few seconds": "正在生成图片,请稍候",
      "Snapshot succeeded": "图片已生成", "Sorry, there was a problem downloading your snapshot!": "图片下载失败",
      "Toggle Spike Lines": "显示或隐藏参考线", "Show closest data on hover": "悬停时显示最近的数据", "Compare data on hover": "悬停时比较数据",
      "Double-click on legend to isolate one trace": "双击图例只看一条", "Produced with Plotly.js": "",
    },
  };
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  let ready = null;
  const plotly = () => (ready ||= KV.load("plotly.min").then(() => {
    window.KV_PLOTLY ||= window.Plotly;
    window.KV_PLOTLY.register(ZH);
    return window.KV_PLOTLY;
  }));

  // A copy of a value with every "var(--x)" replaced by what the style sheet says now.
  const resolved = (value) => {
    if (typeof value === "string") return value.startsWith("var(--") ? KV.css(value.slice(4, -1)) : value;
    if (Array.isArray(value)) return value.map(resolved);
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item)]));
    }
    return value;
  };
  const series = (i) => KV.css(`--series-${(i % 6) + 1}`);
  // Traces differ by shape and dash as well as by colour.
  const dressed = (data) => data.map((trace, i) => {
    const kind = trace.type || "scatter", out = { ...trace };
    if (kind.startsWith("scatter")) {
      out.line = { color: series(i), width: 2.5, dash: DASHES[i % 6], ...trace.line };
      out.marker = { color: out.line.color, symbol: SYMBOLS[i % 6], size: 8, ...trace.marker };
    } else if (kind === "bar" || kind === "histogram") out.marker = { color: series(i), ...trace.marker };
    return out;
  });
  const skin = (layout, height) => {
    const ink = KV.css("--ink"), rule = KV.css("--rule"), muted = KV.css("--muted");
    const family = getComputedStyle(document.body).fontFamily;
    const axis = { gridcolor: rule, zerolinecolor: rule, linecolor: muted, tickcolor: muted, automargin: true, title: { standoff: 10 } };
    const axes = new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))]);
    return {
      margin: { t: layout.title ? 44 : 16, r: 12, b: 44, l: 56 }, hovermode: "closest", dragmode: "pan",
      ...layout, autosize: true, height, uirevision: layout.uirevision ?? "kv",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { size: 13, ...layout.font, color: ink, family },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, ...layout.legend },
      hoverlabel: { bgcolor: KV.css("--card"), bordercolor: muted, font: { color: ink, family, size: 13 }, ...layout.hoverlabel },
      ...Object.fromEntries([...axes].map((name) => [name, { ...axis, ...layout[name], title: title(axis, layout[name]) }])),
    };
  };
  const title = (axis, own = {}) => ({ ...axis.title, ...(typeof own.title === "string" ? { text: own.title } : own.title) });

  const draw = async (host, state) => {
    const Plotly = await plotly();
    const { figure, options } = state;
    if (!figure || !host.isConnected) return;
    const height = options.height || figure.layout?.height || 340;
    const data = dressed(resolved(figure.data || []));
    await Plotly.react(host, data, skin(resolved(figure.layout || {}), height), {
      responsive: true, displaylogo: false, scrollZoom: false, locale: KV.lang === "zh" ? "zh-CN" : "en-US",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "toImage"], ...figure.config,
    });
    await frames(host, state, Plotly);
    host.dataset.renders = Number(host.dataset.renders || 0) + 1;
  };
  const frames = async (host, state, Plotly) => {
    if (host._transitionData?._frames?.length) await Plotly.deleteFrames(host);
    const list = state.figure.frames || [];
    if (list.length) await Plotly.addFrames(host, resolved(list).map((frame, i) => ({ name: String(i), ...frame })));
    if (!list.length || state.player) return state.player?.setLength(Math.max(1, list.length));
    const move = (i) => {
      const now = state.figure.frames;
      if (host._transitionData?._frames?.length) {
        Plotly.animate(host, [now[i].name ?? String(i)], { mode: "immediate", transition: { duration: KV.calm() ? 0 : 250 }, frame: { duration: 0, redraw: true } });
      }
    };
    state.player = KV.player(host.parentElement, {
      length: list.length, label: state.options.label || "", interval: 800, draw: move,
      describe: (i) => state.figure.frames[i].description || state.figure.frames[i].name || KV.frame("player.step", { step: i + 1, length: state.figure.frames.length }),
    });
    host.after(state.player.element);
  };

  const states = new WeakMap();
  KV.plot = (host, figure, options = {}) => {
    let state = states.get(host);
    if (!state) {
      states.set(host, (state = { figure, options, queue: Promise.resolve(), player: null }));
      const again = () => KV.plot(host, state.figure, state.options);
      KV.onTheme(host, again);
      new ResizeObserver(() => { if (host.offsetWidth && host._fullLayout) window.KV_PLOTLY.Plots.resize(host); }).observe(host);
    }
    Object.assign(state, { figure, options: { ...state.options, ...options } });
    host.classList.add("kv-plot");
    host.style.minHeight = `${state.options.height || figure?.layout?.height || 340}px`;
    // One drawing at a time; a failed one must not block the next.
    state.queue = state.queue.then(() => draw(host, state)).catch((error) => {
      console.error("figure:", error);
      host.textContent = KV.frame("plot.failed");
    });
    return state.queue.then(() => host);
  };

  // Called by pages/_figure.py, once for each figure component.
  KV.mountFigure = (element, props, watch) => {
    const host = element.querySelector(".kv-plot"), caption = element.querySelector("figcaption");
    const { alt, description, height } = props.figure;
    element.querySelector("figure").setAttribute("aria-label", alt);
    const update = () => {
      caption.textContent = props.value?.description || description;
      host.style.minHeight = `${height}px`;
      if (props.value) KV.plot(host, props.value, { height, label: alt });
    };
    watch("value", update);
    update();
  };
})();
