/** What a metric's page says of late events. Pure. */
import type { Correction, LateShare, SourceLateness } from "../../api/shapes";
import { lateWords } from "../../messages.late.en";

/** Returns what a corrected series is called: its dimensions' values. */
export function nameOf({ by, other }: Pick<Correction, "by" | "other">): string {
  if (other) return lateWords.other;
  const values = Object.values(by).map((value) => value ?? "null");
  return values.length > 0 ? values.join(" · ") : lateWords.all;
}

/**
 * Returns the share of events that came later than a length; null if there was none.
 *
 * Counts are exact at some lengths only: of these the longest that is not above what was asked
 * for is taken, so that the share is never too small.
 */
export function shareBeyond(
  { events, late }: Pick<SourceLateness, "events" | "late">,
  lengthMs: number,
): LateShare | null {
  if (events === 0) return null;
  const below = late.filter(({ than_ms }) => than_ms <= lengthMs);
  return below.reduce<LateShare | null>(
    (best, one) => (best === null || one.than_ms > best.than_ms ? one : best),
    null,
  );
}
