// Numbers as people read them; the same rules as `skyline_lsp/features/units.py`, so that page and editor agree.

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `number` rounded to `digits` significant digits, never cutting an integer's; no exponent. */
export function significant(number: number, digits: number): string {
  if (!Number.isFinite(number)) return "?";
  if (number === 0) return "0";
  const magnitude = Number(number.toExponential(digits - 1).split("e")[1]);
  const text = number.toFixed(Math.min(20, Math.max(0, digits - 1 - magnitude)));
  return Number(text) === 0 ? "0" : text;
}

/** A time given in milliseconds: "85 µs", "0.45 ms", "12 ms", "1.23 s". */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return "?";
  const size = Math.abs(ms);
  if (size >= 999.5) return `${significant(ms / 1000, 3)} s`;
  if (size >= 0.0995 || size === 0) return `${significant(ms, 2)} ms`;
  return size < 0.00095 ? "<1 µs" : `${significant(ms * 1000, 2)} µs`;
}

/** A size in bytes: "512 B", "98 MiB", "1.2 GiB". */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return "?";
  let number = bytes;
  let unit = "B";
  for (unit of SIZES) {
    if (Math.abs(number) < 1023.5 || unit === "PiB") break;
    number /= 1024;
  }
  // A tenth of a GiB decides whether a batch fits, a tenth of a large number of MiB decides nothing.
  const fine = unit === "GiB" || unit === "TiB" || unit === "PiB" ? 100 : 10;
  const text = unit !== "B" && Math.abs(number) < fine - 0.05 ? number.toFixed(1) : number.toFixed(0);
  return `${text.replace(/\.0$/, "")} ${unit}`;
}

/** A rate without its unit: "0.45", "3.4", "225". */
export function formatRate(perSecond: number): string {
  return significant(perSecond, 2);
}

/** A share, given as a fraction, in percent: "12 %", "2.9 %", "<0.1 %". */
export function formatShare(share: number): string {
  const percent = 100 * share;
  if (!Number.isFinite(percent)) return "?";
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  const text = Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0);
  return `${text.replace(/\.0$/, "")} %`;
}

/** How much more `after` is than `before`: "+82 %", "−3 %", "±0 %". */
export function formatChange(before: number, after: number): string {
  if (!Number.isFinite(before) || !Number.isFinite(after) || before === 0) return "?";
  const change = Math.round(100 * (after / before - 1));
  if (change === 0) return "±0 %";
  return change > 0 ? `+${change} %` : `−${-change} %`;
}

/** An interval, its unit once: "132 to 149 ms". */
export function formatRange(low: number, high: number, format: (value: number) => string): string {
  const first = format(low);
  const last = format(high);
  if (first === last) return first;
  const [number, unit] = split(first);
  return `${unit === split(last)[1] ? number : first} to ${last}`;
}

function split(text: string): [string, string] {
  const at = text.indexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** A number with its noun in the right form. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Round values, in binary units, to put on an axis up to `highest` bytes. */
export function byteTicks(highest: number, about: number): number[] {
  if (!(highest > 0)) return [0];
  const unit = 1024 ** Math.floor(Math.log2(highest) / 10);
  const rough = highest / unit / Math.max(1, about);
  const power = 2 ** Math.floor(Math.log2(rough));
  // 1, 2, 4, ... and, above 4, also 5, 10, 20, 25, 50, ...: what is round both in decimal and for memory sizes.
  const steps = [1, 1.25, 1.5, 2].map((factor) => factor * power);
  const decimal = [5, 10, 20, 25, 50, 100, 200, 250, 500];
  const step = (rough > 3 ? decimal.find((candidate) => candidate >= rough) : steps[3]) ?? power;
  const ticks: number[] = [];
  for (let value = 0; value * unit <= highest * 1.0001; value += step) ticks.push(value * unit);
  return ticks;
}
