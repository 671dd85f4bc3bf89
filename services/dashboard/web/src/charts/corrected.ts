/** What a chart says of a correction: by how much, or of an estimate between what it lies. */
import { change, short } from "../lib/numbers";
import { span } from "../lib/time";
import type { Cell, Correction } from "../live/wire";
import { words } from "../messages.en";

/** Between what an estimate lies. */
export interface Ends {
  readonly low: number;
  readonly high: number;
}

/** Returns the ends of what was shown before; null of what was exact or is not known. */
export function endsBefore(one: Correction): Ends | null {
  return endsOf(one.was_low, one.was_high);
}

function endsOf(low: Cell, high: Cell): Ends | null {
  return low === null || high === null || low === high ? null : { low, high };
}

/** Returns the words beside a mark; the difference of two estimates is no number to be told. */
export function correctionWords(one: Correction): string {
  const now = endsOf(one.is_low, one.is_high);
  const late = span(one.late_ms);
  if (one.was !== null && one.is !== null && !now && !endsBefore(one)) {
    return words.chart.correction(change(one.is - one.was), one.events, late);
  }
  const before = one.was === null ? "" : `${short(one.was)} → `;
  const ends = now ? ` (${words.chart.ends(short(now.low), short(now.high))})` : "";
  return words.chart.correction(`${before}${short(one.is)}${ends}`, one.events, late);
}
