/** Limits on a chart: where they stand, how they move, which one is sensible. Pure. */

/** The part of a chart that has values, in CSS pixels, and its scale. */
export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly low: number;
  readonly high: number;
}

/** Returns how far from the top of the chart a value stands. */
export function yOf({ top, height, low, high }: Frame, value: number): number {
  const share = high > low ? (high - value) / (high - low) : 0;
  return top + Math.min(1, Math.max(0, share)) * height;
}

/** Returns the value at a height, on a round step and within the chart. */
export function valueAt(frame: Frame, y: number): number {
  const { top, height, low, high } = frame;
  const share = height > 0 ? Math.min(1, Math.max(0, (y - top) / height)) : 0;
  return rounded(high - share * (high - low), stepOf(frame));
}

const STEPS = 100;

/** Returns the step that a limit moves by: round, about a hundredth of the scale. */
export function stepOf({ low, high }: Frame): number {
  const rough = Math.max(high - low, Number.MIN_VALUE) / STEPS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = rough / power;
  return (size <= 1 ? 1 : size <= 2 ? 2 : size <= 5 ? 5 : 10) * power;
}

/** Returns a value on a step, without the dust of binary fractions. */
export function rounded(value: number, step: number): number {
  return Number((Math.round(value / step) * step).toPrecision(12)) + 0;
}

const TEN = 10;

/** Returns where a key moves a value; null for keys that move nothing. */
export function movedBy(key: string, value: number, frame: Frame): number | null {
  const step = stepOf(frame);
  const by: Readonly<Record<string, number>> = {
    ArrowUp: step,
    ArrowRight: step,
    ArrowDown: -step,
    ArrowLeft: -step,
    PageUp: TEN * step,
    PageDown: -TEN * step,
  };
  if (key === "Home") return frame.low;
  if (key === "End") return frame.high;
  const move = by[key];
  return move === undefined ? null : rounded(value + move, step);
}

const ABOVE = 1.1;

/**
 * Returns a limit a little above the greatest value of some lines; null without any.
 *
 * Not beyond `most`, which no value can exceed, such as 100 %.
 */
export function sensibleLimit(
  columns: Iterable<Float64Array>,
  most = Number.POSITIVE_INFINITY,
): number | null {
  let peak = Number.NEGATIVE_INFINITY;
  for (const column of columns) for (const value of column) if (value > peak) peak = value;
  if (peak === Number.NEGATIVE_INFINITY) return null;
  if (peak === 0) return 1;
  const above = peak + Math.abs(peak) * (ABOVE - 1);
  // two digits, rounded up
  const step = 10 ** (Math.floor(Math.log10(Math.abs(above))) - 1);
  return Math.min(most, rounded(Math.ceil(above / step - 1e-9) * step, step));
}

/** Returns the number that somebody typed; null while it is none. */
export function numberOf(text: string): number | null {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}
