/** What of a metric is shown, as the address says it. Pure. */
import type { MetricDetail } from "../../api/shapes";
import { lengthOf } from "../../lib/time";

export interface Choice {
  readonly aggregate: string;
  readonly window: string | null;
  readonly by: readonly string[];
}

const WINDOWS = ["10s", "30s", "1m", "5m", "15m", "1h", "6h"];

/** Returns the sliding windows that fit whole panes and the range. */
export function windowsFor(resolutionMs: number, rangeMs: number): readonly string[] {
  return WINDOWS.filter((text) => {
    const length = lengthOf(text) ?? 0;
    return length % resolutionMs === 0 && length >= resolutionMs && length <= rangeMs;
  });
}

/** Returns the choice in an address; what the metric does not have is ignored. */
export function chosenOf(
  metric: Pick<MetricDetail, "aggregates" | "by" | "resolution_ms">,
  params: URLSearchParams,
): Choice {
  const asked = params.get("agg");
  const aggregate = metric.aggregates.find((one) => one === asked) ?? usual(metric.aggregates);
  const window = params.get("win");
  const length = window === null ? null : lengthOf(window);
  const by = params.get("by");
  return {
    aggregate,
    window: length !== null && length % metric.resolution_ms === 0 ? window : null,
    // Without a word about it, the first dimension shows more than the whole.
    by: by === null ? metric.by.slice(0, 1) : metric.by.filter((d) => by.split(",").includes(d)),
  };
}

/** Returns the aggregate that says most: a high percentile, else a rate, else the first. */
function usual(aggregates: readonly string[]): string {
  return (
    aggregates.find((one) => one === "p95") ??
    aggregates.find((one) => one === "rate") ??
    aggregates[0] ??
    "count"
  );
}
