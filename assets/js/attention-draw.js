// Shared by the widgets of the page "Attention and its cache": numbers from the server, tokens as text, strips and maps.
KV.attention = (() => {
  "use strict";

  // Little-endian float32 in base64, as pages/attention_payload.py packs it.
  const floats = (base64) => new Float32Array(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)).buffer);

  const NAMED = { "\n": "⏎", "\r": "␍", "\t": "⇥", " ": "␣" };
  const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]/u;
  const visible = (char) => {
    if (NAMED[char]) return NAMED[char];
    if (!INVISIBLE.test(char)) return char;
    const code = char.codePointAt(0);
    return code < 32 ? String.fromCodePoint(0x2400 + code) : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  };

  // A token in words: its text without outer spaces, or the bytes it holds and the character they belong to.
  const plain = (piece) => {
    if (piece.text === null) return piece.chars ? `${piece.chars} (${piece.hex})` : piece.hex;
    const trimmed = piece.text.trim();
    return Array.from(trimmed || piece.text, visible).join("");
  };
  const quoted = (piece) => `“${plain(piece)}”`;

  // A token as a node; whitespace that belongs to it is shown, pale. Text only, never markup.
  const token = (piece) => {
    if (piece.text === null) {
      return KV.el("bdi", { class: "kv-attn-token" }, piece.chars || "", KV.el("small", {}, piece.hex));
    }
    const parts = piece.text.match(/^\s+|\s+$|.+?(?=\s*$)/gsu) || [];
    return KV.el("bdi", { class: "kv-attn-token" }, parts.map((part) => {
      const text = Array.from(part, visible).join("");
      return part.trim() ? text : KV.el("span", { class: "kv-attn-space" }, text);
    }));
  };

  const context = (canvas, width, height) => {
    const scale = Math.max(1, window.devicePixelRatio || 1);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, height);
    return ctx;
  };

  // One bar for each number, up for positive, down for negative. Heights grow with the square root, so that the many
  // small numbers stay visible beside a few large ones; `limit` is the number that fills the height.
  const strip = (canvas, values, { colour, limit, mark = -1 }) => {
    const width = canvas.clientWidth || 128, height = canvas.clientHeight || 22;
    const ctx = context(canvas, width, height), step = width / values.length, middle = height / 2;
    if (mark >= 0) {
      ctx.fillStyle = KV.css("--rule");
      ctx.fillRect(mark * step - 1, 0, step + 2, height);
    }
    ctx.fillStyle = KV.css(colour);
    values.forEach((value, index) => {
      const size = Math.max(0.5, Math.sqrt(Math.min(1, Math.abs(value) / limit)) * (middle - 1));
      ctx.fillRect(index * step, value < 0 ? middle : middle - size, Math.max(1, step - 0.5), size);
    });
    ctx.fillStyle = KV.css("--muted");
    ctx.globalAlpha = 0.5;
    ctx.fillRect(0, middle - 0.25, width, 0.5);
  };

  // A grid of shares between 0 and 1: `value(row, column)` gives a number or null (nothing there).
  const grid = (canvas, { rows, columns, value, picked }) => {
    const width = canvas.clientWidth || 300, cell = width / columns, height = cell * rows;
    canvas.style.height = `${height}px`;
    const ctx = context(canvas, width, height), gap = cell > 7 ? 1 : 0;
    ctx.fillStyle = KV.css("--accent");
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const share = value(row, column);
        if (share === null) continue;
        ctx.globalAlpha = 0.06 + 0.94 * share;
        ctx.fillRect(column * cell, row * cell, cell - gap, cell - gap);
      }
    }
    ctx.globalAlpha = 1;
    ctx.strokeStyle = KV.css("--measured");
    ctx.lineWidth = 2;
    const [x, y, wide, high] = picked(cell);
    ctx.strokeRect(Math.max(1, x), Math.max(1, y), Math.min(wide, width - x - 1), Math.min(high, height - y - 1));
  };

  // Where in a grid of `columns` a pointer event lies: [row, column].
  const cellAt = (canvas, event, columns) => {
    const box = canvas.getBoundingClientRect(), cell = box.width / columns;
    return [Math.floor((event.clientY - box.top) / cell), Math.floor((event.clientX - box.left) / cell)];
  };

  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  // A difference in words that never round to a false zero.
  const small = (difference) => (difference === 0 ? "0" : difference.toExponential(1).replace("e-", "e−"));
  const signed = (value, decimals = 3) => value.toFixed(decimals).replace("-", "−");
  // A weight; one too small for three decimals says so instead of reading as nothing.
  const share = (weight) => (weight > 0 && weight < 0.0005 ? small(weight) : weight.toFixed(3));

  // The same for a number of either sign.
  const fine = (value) => (value !== 0 && Math.abs(value) < 0.0005 ? small(value).replace(/^-/, "−") : signed(value));

  return { share, fine, floats, plain, quoted, token, strip, grid, cellAt, largest, small, signed, reading: null };
})();
