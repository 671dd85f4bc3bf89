/** Between which ends a number lies, in words: an estimate never stands alone. Pure. */
import { words } from "../messages.en";
import { bounds } from "./numbers";
import { amountOf, type Measured } from "./signals";

/** A number as the API tells it; ends are unknown where there is no number. */
export interface Estimate {
  readonly value?: number | null;
  readonly low?: number | null;
  readonly high?: number | null;
}

/** Returns the ends of a number for a column of its own, or that it is exact. */
export function withinText(low: number, high: number, unit: string): string {
  return low === high ? words.tile.exact : bounds(low, high, unit);
}

/** Returns the ends of an estimate, such as `592 – 648 ms`; nothing of what is exact. */
export function endsText({ low, high }: Estimate, unit: string): string {
  const known = typeof low === "number" && typeof high === "number" && low !== high;
  return known ? bounds(low, high, unit) : "";
}

/** Returns a number for a sentence: `617 ms (592 – 648 ms)`, or `12 ms` where it is exact. */
export function estimateText(told: Estimate, of: Omit<Measured, "aggregate">): string {
  const ends = endsText(told, of.unit);
  return amountOf(told.value, of) + (ends && ` (${ends})`);
}
