// Numbers as text. Binary units (KiB, MiB, GiB) are powers of 1024, decimal ones (kB, MB, GB) powers of 1000.
{
  const scaled = (n, base, units) => {
    if (!Number.isFinite(n)) return "–";
    let value = Math.abs(n), unit = 0;
    // The rounded text decides the unit, so that 1023.999 KiB reads as 1.00 MiB.
    while (unit < units.length - 1 && Number(value.toFixed(unit ? digits(value) : 0)) >= base) { value /= base; unit += 1; }
    const text = unit ? value.toFixed(digits(value)) : KV.number(Math.round(value));
    return `${n < 0 ? "-" : ""}${value >= 1000 && unit ? KV.number(Number(text)) : text} ${units[unit]}`;
  };
  const digits = (value) => (value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  // 12345.6 -> "12,345.6"; the second argument fixes the decimals.
  KV.number = (n, decimals) => n.toLocaleString("en-US",
    decimals === undefined ? { maximumFractionDigits: 6 } : { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  KV.bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
  KV.decimalBytes = (n) => scaled(n, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);
  KV.exactBytes = (n) => `${KV.number(n)} B`;
}
