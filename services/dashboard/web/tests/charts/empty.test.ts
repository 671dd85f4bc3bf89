import { describe, expect, it } from "vitest";
import { emptinessOf, leastFor } from "../../src/charts/empty";
import { lastCounted, plotOf } from "../../src/charts/plot";
import { modelOf } from "../../src/live/model";
import type { Cell } from "../../src/live/wire";

/** Returns the plot of one series with a window a minute. */
function plot(value: readonly Cell[], count: readonly Cell[]) {
  const model = modelOf({
    metric: { name: "m", version: 1, unit: null, resolution_ms: 10_000, lateness_ms: 0 },
    epoch: 1,
    rev: 1,
    final_to_ms: null,
    of: 1,
    t_ms: value.map((_, at) => (at + 1) * 60_000),
    series: [{ k: 0, by: {}, slot: 0, value, low: value, high: value, count, state: "fff" }],
  });
  return plotOf([{ model, aggregate: "p95" }], null);
}

describe("an empty chart", () => {
  it("tells too few events from none", () => {
    // Fifteen events came: that none matched would be false.
    const few = plot([null, null, null], [0, 15, 0]);
    expect(emptinessOf(few, ["p95"])).toEqual({ few: { aggregate: "p95", least: 20 } });
    expect(emptinessOf(plot([null, null, null], [0, 0, null]), ["p95"])).toEqual({ few: null });
    expect(emptinessOf(plot([null, 7, null], [0, 20, 0]), ["p95"])).toBeNull();
  });

  it.each([
    ["p95", 20],
    ["p5", 20],
    ["p99", 100],
    ["p99.9", 1000],
    ["p50", 2],
    ["avg", null],
  ])("knows what %s needs", (aggregate, least) => {
    // As the server decides it: one value beyond the percentile.
    expect(leastFor(aggregate)).toBe(least);
  });

  it("still counts what it cannot say a percentile of", () => {
    // The table beside it shows the newest window that has events.
    const few = plot([null, null, null], [0, 15, 0]);
    expect(few.lines.map(lastCounted)).toEqual([1]);
  });
});
