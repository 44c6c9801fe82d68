// The roofline: what a device can reach at each intensity, both axes logarithmic; every operation stands on the roof.
// KV.rooflinePlot(host, kv) gives draw({device, devices, points}); a point is {mark, x, kind}.
KV.rooflinePlot = (host, kv) => {
  "use strict";
  const { svg } = kv, math = KV.roofline;
  const MARGIN = { top: 12, right: 14, bottom: 44, left: 58 }, X = [0.4, 40000], Y = [8e10, 2.5e15], FLAG = 27;
  const root = host.appendChild(svg("svg", { class: "rf-plot", role: "img" }));
  let view = null, width = 0;

  const scale = (low, high, from, to) => (n) => from + ((to - from) * Math.log10(Math.min(high, Math.max(low, n)) / low)) / Math.log10(high / low);
  const draw = (next) => {
    view = next || view;
    width = host.clientWidth;
    if (!view || !width) return;
    const height = Math.round(Math.min(440, Math.max(330, width * 0.62))), bottom = height - MARGIN.bottom, right = width - MARGIN.right;
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("height", height);
    const x = scale(...X, MARGIN.left, right), y = scale(...Y, bottom, MARGIN.top);
    const roof = (device, name) => svg("path", { class: name,
      d: `M${x(X[0])} ${y(X[0] * device.bandwidth)}L${x(math.ridge(device))} ${y(device.flops)}L${x(X[1])} ${y(device.flops)}` });
    const ridge = math.ridge(view.device), rx = x(ridge), ry = y(view.device.flops);
    root.replaceChildren(
      svg("rect", { class: "rf-bound", x: rx, y: MARGIN.top, width: right - rx, height: bottom - MARGIN.top }),
      ...[1, 10, 100, 1000, 10000].map((n) => svg("g", {}, svg("line", { class: "rf-grid", x1: x(n), x2: x(n), y1: MARGIN.top, y2: bottom }),
        svg("text", { x: x(n), y: bottom + 17, "text-anchor": "middle" }, kv.number(n)))),
      ...[[1e11, "0.1 T"], [1e12, "1 T"], [1e13, "10 T"], [1e14, "100 T"], [1e15, "1 P"]].map(([n, words]) => svg("g", {}, svg("line", { class: "rf-grid", x1: MARGIN.left, x2: right, y1: y(n), y2: y(n) }),
        svg("text", { x: MARGIN.left - 7, y: y(n) + 4, "text-anchor": "end" }, words))),
      svg("text", { x: (MARGIN.left + right) / 2, y: height - 8, "text-anchor": "middle" }, kv.t("axis-x")),
      svg("text", { x: 0, y: MARGIN.top + 2, "dominant-baseline": "hanging" }, kv.t("axis-y")),
      ...view.devices.filter((device) => device !== view.device).map((device) => roof(device, "rf-other")),
      roof(view.device, "rf-roof"),
      svg("line", { class: "rf-drop", x1: rx, x2: rx, y1: ry, y2: bottom }),
      svg("path", { class: "rf-ridge", d: `M${rx} ${ry - 7}l7 7l-7 7l-7 -7z` }),
      svg("text", { class: "rf-label", x: rx - 6, y: bottom - 8, "text-anchor": "end" }, kv.t(width < 480 ? "memory-short" : "memory-side")),
      svg("text", { class: "rf-label", x: rx + 6, y: bottom - 8 }, kv.t(width < 480 ? "compute-short" : "compute-side")),
      ...flags(x, y, bottom),
    );
  };
  // Each operation hangs below the roof on a flag with its number; flags that would cover each other hang lower.
  const flags = (x, y, bottom) => {
    const placed = [];
    return [...view.points].sort((a, b) => a.x - b.x).map((point) => {
      const px = x(point.x), top = y(math.reachable(point.x, view.device));
      let at = top + FLAG;
      while (placed.some((other) => Math.abs(other.px - px) < 21 && Math.abs(other.at - at) < 21)) at += 22;
      at = Math.min(at, bottom - 26);
      placed.push({ px, at });
      const shape = point.kind === "weights" ? svg("rect", { class: "rf-flag", x: px - 9.5, y: at - 9.5, width: 19, height: 19, rx: 2 }) : svg("circle", { class: "rf-flag", cx: px, cy: at, r: 10 });
      return svg("g", { "data-point": point.mark, "data-x": px.toFixed(2) }, svg("line", { class: "rf-stem", x1: px, x2: px, y1: top, y2: at - 9 }),
        svg("circle", { class: "rf-dot", cx: px, cy: top, r: 3.5 }), shape, svg("text", { class: "rf-mark", x: px, y: at + 4.5, "text-anchor": "middle" }, point.mark));
    });
  };
  new ResizeObserver(() => { if (view && host.clientWidth !== width) draw(); }).observe(host);
  return { draw, describe: (text) => root.setAttribute("aria-label", text) };
};
