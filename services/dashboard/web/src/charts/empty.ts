/** Why a chart has no line: nothing came, or too little for what was asked. Pure. */
import type { Plot } from "./plot";

/** What an empty chart says of itself. */
export interface Emptiness {
  /** The percentile that was asked, and the events in a window that it needs; null: no events. */
  readonly few: { readonly aggregate: string; readonly least: number } | null;
}

/**
 * Returns how many events in a window a percentile needs; null for what is no percentile.
 *
 * The server's rule: one value must lie beyond it on its nearer side.
 */
export function leastFor(aggregate: string): number | null {
  const found = /^p(\d{1,2}(?:\.\d{1,3})?)$/.exec(aggregate);
  const share = Number(found?.[1]) / 100;
  if (!(share > 0)) return null;
  // 1 - 0.999 is a little less than 0.001.
  return Math.ceil(1 / Math.min(share, 1 - share) - 1e-6);
}

/** Returns why no line has a value; null if one has. */
export function emptinessOf(plot: Plot, aggregates: readonly string[]): Emptiness | null {
  if (!plot.lines.every((line) => line.value.every(Number.isNaN))) return null;
  const counted = plot.lines.some((line) => line.count.some((n) => n > 0));
  const needs = aggregates.flatMap((aggregate) => {
    const least = leastFor(aggregate);
    return least === null ? [] : [{ aggregate, least }];
  });
  const easiest = needs.sort((a, b) => a.least - b.least)[0];
  return { few: counted && easiest ? easiest : null };
}
