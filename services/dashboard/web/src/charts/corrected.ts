/** What a chart says of a correction: by how much, or of an estimate between what it lies. */
import { change, short } from "../lib/numbers";
import { span } from "../lib/time";
import type { Correction } from "../live/wire";
import { words } from "../messages.en";
import type { Line, Plot } from "./plot";

/** Between what an estimate lies. */
export interface Ends {
  readonly low: number;
  readonly high: number;
}

/** Returns the ends of what was shown before; null of what was exact or is not known. */
export function endsBefore(one: Correction): Ends | null {
  return endsOf(one.was_low, one.was_high);
}

/** Returns the ends of what is shown now. */
export function endsNow(plot: Plot, line: Line, one: Correction): Ends | null {
  const at = plot.tMs.indexOf(one.t_ms);
  return endsOf(line.low[at], line.high[at]);
}

function endsOf(low: number | null | undefined, high: number | null | undefined): Ends | null {
  if (!Number.isFinite(low) || !Number.isFinite(high) || low === high) return null;
  return { low: Number(low), high: Number(high) };
}

/** Returns the words beside a mark; the difference of two estimates is no number to be told. */
export function correctionWords(plot: Plot, line: Line, one: Correction): string {
  const now = endsNow(plot, line, one);
  const late = span(one.late_ms);
  if (one.was !== null && one.is !== null && !now && !endsBefore(one)) {
    return words.chart.correction(change(one.is - one.was), one.events, late);
  }
  const before = one.was === null ? "" : `${short(one.was)} → `;
  const ends = now ? ` (${words.chart.ends(short(now.low), short(now.high))})` : "";
  return words.chart.correction(`${before}${short(one.is)}${ends}`, one.events, late);
}
