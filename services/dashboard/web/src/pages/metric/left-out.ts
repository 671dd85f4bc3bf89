/** Of what a version could not use, how much has no copy in quarantine. Pure. */
import type { QuarantineSummary } from "../../api/shapes";

export interface LeftOut {
  readonly missing: number;
  readonly copies: number;
  /** Of the partitions of the log in which events have no copy, where most do first. */
  readonly parts: readonly { readonly partition: number | null; readonly missing: number }[];
  /** Whether the quarantine was not read to its beginning. */
  readonly isPartial: boolean;
}

/** Returns what a version's copies leave out; null if there is a copy of everything. */
export function leftOutOf(summary: QuarantineSummary | null, version: number): LeftOut | null {
  const own = summary?.items.filter((one) => one.metric_version === version) ?? [];
  const missing = own.reduce((sum, one) => sum + one.left_out, 0);
  if (summary === null || missing === 0) return null;
  return {
    missing,
    copies: own.reduce((sum, one) => sum + one.copies, 0),
    parts: own
      .filter((one) => one.left_out > 0)
      .map((one) => ({ partition: one.partition, missing: one.left_out })),
    isPartial: !summary.whole,
  };
}
