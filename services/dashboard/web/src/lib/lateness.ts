/** What is known of how late events are, told for one allowed lateness. Pure. */
import type { LateShare, SourceLateness } from "../api/shapes";

/**
 * Returns how many events came later than a length; null if there was none.
 *
 * What came later is counted at the lengths told: of these the longest that is not above what was
 * asked for is taken, so that between two of them the share is never too small.
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

/** Returns the lengths told, up to the first that no event came later than. */
export function lengthsSeen({ late }: Pick<SourceLateness, "late">): readonly number[] {
  const lengths = late.map(({ than_ms }) => than_ms);
  const none = late.findIndex(({ events }) => events === 0);
  return none < 0 ? lengths : lengths.slice(0, none + 1);
}
