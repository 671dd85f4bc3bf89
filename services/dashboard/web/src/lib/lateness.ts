/** What is known of how late events are, told for one allowed lateness. Pure. */
import type { LatenessTold, LateShare, SourceLateness } from "../api/shapes";
import type { Problem } from "../live/wire";

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

/** How many hours are asked for: a day, or less where more is refused as too much. */
export const DAY_HOURS = 24;
const FEWER_HOURS = [6, 1];

/** What is refused because less of it would be answered. */
const TOO_MUCH = new Set(["query_too_large", "query_timeout"]);

/** Returns how many hours to ask for in place of those refused; null: it is no matter of hours. */
export function fewerHours(hours: number, { code }: Pick<Problem, "code">): number | null {
  if (!TOO_MUCH.has(code)) return null;
  return FEWER_HOURS.find((fewer) => fewer < hours) ?? null;
}

const HOUR_MS = 3_600_000;

/** Returns of how many hours something is told: whole ones, of which the last is not over. */
export function hoursOf({ from_ms, to_ms }: Pick<LatenessTold, "from_ms" | "to_ms">): number {
  return Math.floor((to_ms - from_ms) / HOUR_MS) + 1;
}
