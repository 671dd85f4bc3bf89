/** Numbers as people read them: three digits, fixed spelling, exact on demand. */

const LOCALE = "en";
const SCALES = [
  { from: 1e12, by: 1e12, suffix: "T" },
  { from: 1e9, by: 1e9, suffix: "G" },
  { from: 1e6, by: 1e6, suffix: "M" },
  { from: 1e4, by: 1e3, suffix: "k" },
] as const;

// A zero has no sign, also where a sum came to -0 or rounding does.
const digits = (most: Intl.NumberFormatOptions) =>
  new Intl.NumberFormat(LOCALE, { signDisplay: "negative", ...most });
const three = digits({ maximumSignificantDigits: 3 });
const whole = digits({ maximumFractionDigits: 0 });
const seven = digits({ maximumSignificantDigits: 7 });
const full = digits({ maximumSignificantDigits: 17 });
const signed = digits({ maximumSignificantDigits: 3, signDisplay: "exceptZero" });

/** What stands for a value that is not known. */
export const NONE = "–";

/** Returns a value with three digits, such as `617`, `18.2 k`; a dash for what is unknown. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  // Rounded to three digits first: 999,999 is 1 M and not 1,000 k.
  const rounded = size === 0 ? 0 : Number(size.toPrecision(3));
  const scale = SCALES.find((s) => rounded >= s.from);
  return scale ? `${three.format(value / scale.by)} ${scale.suffix}` : three.format(value);
}

/** Returns a value with seven digits: without the noise of a sum of fractions. */
export function fine(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value)
    ? NONE
    : seven.format(value);
}

/** Returns a value with all its digits. */
export function exact(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value)
    ? NONE
    : full.format(value);
}

/** Returns a whole number with its digits grouped. */
export function integer(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value)
    ? NONE
    : whole.format(value);
}

/** Returns a value with its sign. */
export function change(value: number): string {
  return Number.isFinite(value) ? signed.format(value).replace("-", "−") : NONE;
}

/** Returns a share as a percentage, such as `58 %`. */
export function percent(share: number): string {
  return `${three.format(share * 100)} %`;
}

const BYTES = /^(B|bytes)(\/s)?$/;

/** A value in two pieces, as a tile draws them. */
export interface Pieces {
  readonly text: string;
  readonly unit: string;
}

/** Returns a value apart from its unit; of bytes the thousands belong to the unit: `172`, `kB`. */
export function pieces(value: number | null | undefined, unit: string): Pieces {
  const text = short(value);
  if (text === NONE) return { text, unit: "" };
  const bytes = BYTES.exec(unit);
  if (!bytes) return { text, unit };
  const [digits = "", suffix = ""] = text.split(" ");
  return { text: digits, unit: `${suffix}B${bytes[2] ?? ""}` };
}

/** Returns a value and its unit as one text, such as `617 ms`. */
export function withUnit(value: number | null | undefined, unit: string): string {
  const told = pieces(value, unit);
  if (told.unit === "") return told.text;
  return told.unit.startsWith("/") ? `${told.text}${told.unit}` : `${told.text} ${told.unit}`;
}

/** Returns a value for an axis or a line's end, where the unit stands elsewhere: only bytes keep it. */
export function label(value: number | null | undefined, unit: string): string {
  return BYTES.test(unit) ? withUnit(value, "B") : short(value);
}

/** Returns the bounds of a value, such as `592 – 648 ms`. */
export function bounds(low: number, high: number, unit: string): string {
  return `${label(low, unit)} – ${withUnit(high, unit)}`;
}

/** Returns the unit that an aggregate of a metric is told in. */
export function unitOf(aggregate: string, unit: string | null): string {
  if (aggregate === "rate") return "/s";
  return aggregate === "count" || isOfTexts(aggregate) ? "" : (unit ?? "");
}

/** Tells whether an aggregate counts texts, whatever the unit of the metric's value. */
function isOfTexts(aggregate: string): boolean {
  return /^(distinct|theta|top)\b/.test(aggregate);
}

/** Tells whether an aggregate is a list of texts, and not a number that could be drawn. */
export function isList(aggregate: string): boolean {
  return /^top\b/.test(aggregate);
}

/** Tells whether an aggregate is read from a sketch: a percentile or a distinct count. */
export function isSketched(aggregate: string): boolean {
  return /^(p\d|distinct\b|theta\b)/.test(aggregate);
}

/** Tells whether an aggregate only grows in a window, so that half a window reads as a drop. */
export function grows(aggregate: string): boolean {
  return /^(count|rate|sum|distinct|theta)\b/.test(aggregate);
}

/** Tells whether an axis of this aggregate starts at zero. */
export function startsAtZero(aggregate: string, unit = ""): boolean {
  if (unit === "%") return true;
  return ["count", "rate", "sum"].includes(aggregate) || isOfTexts(aggregate);
}
