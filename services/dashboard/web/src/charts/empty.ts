/** Why a chart has no line. Pure. */
import { easiestOf, type Why, whyNone } from "../lib/unknown";
import type { Plot } from "./plot";

/** What an empty chart says of itself; where events are few, the percentile that needs fewest. */
export type Emptiness =
  | { readonly why: Exclude<Why, "few">; readonly few: null }
  | { readonly why: "few"; readonly few: { readonly aggregate: string; readonly least: number } };

/** Returns why no line has a value; null if one has. */
export function emptinessOf(plot: Plot, aggregates: readonly string[]): Emptiness | null {
  if (!plot.lines.every((line) => line.value.every(Number.isNaN))) return null;
  const now = plot.lines.filter((line) => !line.ghost);
  const why = whyNone(now, { aggregates, capped: plot.capped });
  if (why !== "few") return { why, few: null };
  return { why, few: easiestOf(aggregates) ?? { aggregate: "", least: 0 } };
}
