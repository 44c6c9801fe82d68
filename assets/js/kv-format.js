// Numbers as text, by the rules of explorer/specs/units.py (a test holds the two equal): binary units (KiB, MiB, GiB) are powers
// of 1,024, decimal ones (kB, MB, GB) powers of 1,000; two decimals, rounded half up; single bytes are counted exactly.
(() => {
  const BINARY = [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]];
  const DECIMAL = [1000, ["B", "kB", "MB", "GB", "TB", "PB"]];
  // 12345.5 -> "12,345.5"; the second argument fixes the decimals.
  KV.number = (n, decimals) => n.toLocaleString("en-US",
    decimals === undefined ? { maximumFractionDigits: 6 } : { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

  const whole = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  // BigInt, because hundredths of a pebibyte do not fit into a double.
  const scaled = (n, [base, units]) => {
    const bytes = BigInt(Math.round(n)), step = BigInt(base);
    for (let i = 0, size = 1n; i < units.length; i++, size *= step) {
      const hundredths = (200n * bytes + size) / (2n * size);
      if (i === units.length - 1 || hundredths < 100n * step) {
        return i ? `${whole(hundredths / 100n)}.${String(hundredths % 100n).padStart(2, "0")} ${units[i]}` : `${whole(bytes)} B`;
      }
    }
  };
  // For whole, non-negative counts of bytes (a fraction is rounded first); anything else reads as a dash.
  const text = (n, kind) => (Number.isFinite(n) && n >= 0 ? scaled(n, kind) : "–");
  KV.bytes = (n) => text(n, BINARY);
  KV.decimalBytes = (n) => text(n, DECIMAL);
  KV.exactBytes = (n) => `${KV.number(n)} B`;
})();
