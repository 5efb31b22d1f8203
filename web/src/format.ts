// Formats numbers as the report in the terminal does: three significant digits and always a unit.

/** The no-break space between a number and its unit. */
const GAP = "\u00a0";

export type Kind = "percent" | "ratio" | "count" | "whole" | "bytes" | "seconds" | "ns" | "bandwidth" | "plain";

/** Three significant digits; no decimals from 100 on. */
function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(value: number, base: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= base * 0.9995 && unit + 1 < units.length) {
    rest /= base;
    unit += 1;
  }
  // Sizes that are whole in their unit have no error to show.
  const whole = base === 1024 && Number.isInteger(rest);
  const digits = whole ? rest.toFixed(0) : unit === 0 ? rest.toFixed(Number.isInteger(rest) ? 0 : 1) : significant(rest);
  return units[unit] ? digits + GAP + units[unit] : digits;
}

/** `950`, `1.25 k`, `3.40 G`. */
export const count = (n: number) => scaled(n, 1000, ["", "k", "M", "G", "T", "P"]);
/** `512 B`, `4 KiB`, `1.50 MiB`. */
export const bytes = (n: number) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
/** `8,191`. */
export const whole = (n: number) =>
  Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
/** `1.90×`. */
export const ratio = (r: number) => `${r.toFixed(2)}×`;
export const ns = (n: number) => `${n.toFixed(0)}${GAP}ns`;
/** A bandwidth, given in MB/s. */
export const bandwidth = (n: number) => `${significant(n / 1000)}${GAP}GB/s`;

/** A fraction as `12.5 %`; it is never rounded to 0 % or 100 %. */
export function percent(fraction: number): string {
  let p = fraction * 100;
  const size = Math.abs(p);
  if (size > 0 && size < 0.1) p = Math.sign(p) * 0.1;
  else if (size < 100 && size > 99.9) p = Math.sign(p) * 99.9;
  return `${p.toFixed(1)}${GAP}%`;
}

/** As `percent`, without the unit, for narrow cells. */
export const digits = (fraction: number) => percent(fraction).slice(0, -2);

/** A bound that is at most this many per cent from the end of the possible range is not shown. */
const NEGLIGIBLE_PERCENT = 5;

/** Bounds of a share of accesses in words, in whole per cents rounded outwards; the share is at least `least`. */
export function between([low, high]: readonly [number, number], least = 0): string {
  const [from, to] = [Math.floor(low * 100), Math.ceil(high * 100)];
  const [open, full] = [from <= 100 * least + NEGLIGIBLE_PERCENT, to >= 100 - NEGLIGIBLE_PERCENT];
  if (from >= 100) return `100${GAP}%`;
  if (open && full) return "samples cannot say";
  if (open) return `at most ${to}${GAP}%`;
  return full ? `at least ${from}${GAP}%` : `${from} – ${to}${GAP}%`;
}

/** `2.10 s`, `15.0 ms`. */
export function seconds(s: number): string {
  if (s === 0) return `0${GAP}s`;
  const size = Math.abs(s);
  if (size >= 1) return `${significant(s)}${GAP}s`;
  if (size >= 1e-3) return `${significant(s * 1e3)}${GAP}ms`;
  return `${significant(s * 1e6)}${GAP}µs`;
}

const KINDS: Record<Kind, (n: number) => string> = {
  percent,
  ratio,
  count,
  whole,
  bytes,
  seconds,
  ns,
  bandwidth,
  plain: (n) => String(n),
};

/** Formats a value; a dash if it is unknown or not a number. */
export function format(value: unknown, as: Kind): string {
  return typeof value === "number" && Number.isFinite(value) ? KINDS[as](value) : "–";
}

/** Formats a difference with its sign. */
export function signed(value: number, as: Kind): string {
  const text = format(Math.abs(value), as);
  return value > 0 ? `+${text}` : value < 0 ? `−${text}` : `±${text}`;
}

/** `node` for one, `nodes`, `accesses` and `copies` for any other number; the terminal has the same rule. */
export function noun(n: number, one: string): string {
  if (n === 1) return one;
  if (/[^aeiou]y$/.test(one)) return `${one.slice(0, -1)}ies`;
  return one + (/(s|ch)$/.test(one) ? "es" : "s");
}

/** `1 node`, `8 nodes`. */
export const plural = (n: number, one: string) => `${whole(n)}${GAP}${noun(n, one)}`;

/** The end of a shortened list, as in the terminal: how much is left out, and where the whole list is. */
export const andMore = (left: number, what: string, whole: string) => (left > 0 ? ` and ${plural(left, `more ${what}`)} (${whole})` : "");

/** Pages by number: `17`, `17–40`. */
export const pages = (first: number, n: number) => (n === 1 ? whole(first) : `${whole(first)}–${whole(first + n - 1)}`);

/** Shortens a text to `room` characters; callers show the whole text in a title. */
export const shortened = (text: string, room: number) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
