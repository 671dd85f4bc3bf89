/** Why there is no value: nothing came, or it is not known, and why not. Pure. */

export type Why =
  /** It is known that nothing came. */
  | "none"
  /** No series at all: nothing is counted, for whatever reason. */
  | "nothing"
  /** Fewer events than the percentile needs. */
  | "few"
  | "rebuilding"
  /** Some of it is in `other`, and nobody can tell which. */
  | "capped"
  | "incomplete"
  | "unkept"
  /** Counting has not come so far. */
  | "waiting"
  /** Events were counted that do not say this number. */
  | "unsaid";

/** What a series says of its windows besides their values. */
export interface Windows {
  readonly count: Float64Array;
  /** A letter a window: n r i p f. */
  readonly state: string;
}

interface Asked {
  readonly aggregates: readonly string[];
  /** Whether the answer has the note that the metric is capped. */
  readonly capped: boolean;
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

/** Returns the percentile that needs the fewest events, with how many; null of none. */
export function easiestOf(
  aggregates: readonly string[],
): { aggregate: string; least: number } | null {
  const needs = aggregates.flatMap((aggregate) => {
    const least = leastFor(aggregate);
    return least === null ? [] : [{ aggregate, least }];
  });
  return needs.sort((a, b) => a.least - b.least)[0] ?? null;
}

/** Returns why none of these windows has a value. */
export function whyNone(all: readonly Windows[], { aggregates, capped }: Asked): Why {
  let most = 0;
  let empty = false;
  // The states of the windows of which not even the count is known.
  const untold = new Set<string>();
  for (const { count, state } of all) {
    count.forEach((n, at) => {
      if (Number.isNaN(n)) untold.add(state[at] ?? "n");
      else if (n > most) most = n;
      else if (n === 0) empty = true;
    });
  }
  if (most > 0) {
    const easiest = easiestOf(aggregates);
    return easiest && most < easiest.least ? "few" : capped ? "capped" : "unsaid";
  }
  if (all.length === 0) return "nothing";
  if (untold.has("r")) return "rebuilding";
  // The window of the present has no count yet, capped or not.
  if (capped && (untold.has("f") || (untold.has("p") && !empty))) return "capped";
  if (untold.has("i")) return "incomplete";
  if (untold.has("n")) return "unkept";
  return empty ? "none" : "waiting";
}
