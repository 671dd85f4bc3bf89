import { describe, expect, it } from "vitest";
import { emptinessOf } from "../../src/charts/empty";
import { lastCounted, plotOf } from "../../src/charts/plot";
import { leastFor } from "../../src/lib/unknown";
import { modelOf } from "../../src/live/model";
import type { Cell } from "../../src/live/wire";

interface Told {
  readonly aggregate?: string;
  readonly state?: string;
  readonly capped?: boolean;
}

/** Returns the plot of one series with a window a minute. */
function plot(value: readonly Cell[], count: readonly Cell[], told: Told = {}) {
  const { aggregate = "p95", state = "fff", capped = false } = told;
  const model = modelOf({
    metric: { name: "m", version: 1, unit: null, resolution_ms: 10_000, lateness_ms: 0 },
    epoch: 1,
    rev: 1,
    final_to_ms: null,
    of: 1,
    t_ms: value.map((_, at) => (at + 1) * 60_000),
    notes: capped ? [{ code: "capped", message: "more series than the metric keeps" }] : [],
    series: [{ k: 0, by: {}, slot: 0, value, low: value, high: value, count, state }],
  });
  return plotOf([{ model, aggregate }]);
}

const UNSAID = [null, null, null];

describe("an empty chart", () => {
  it("tells too few events from none", () => {
    // Fifteen events came: that none matched would be false.
    const few = plot([null, null, null], [0, 15, 0]);
    expect(emptinessOf(few, ["p95"])).toEqual({
      why: "few",
      few: { aggregate: "p95", least: 20 },
    });
    const none = plot(UNSAID, [0, 0, null], { state: "ffp" });
    expect(emptinessOf(none, ["p95"])).toEqual({ why: "none", few: null });
    expect(emptinessOf(plot([null, 7, null], [0, 20, 0]), ["p95"])).toBeNull();
  });

  it.each([
    ["rebuilding", [null, null, null], { state: "rrr" }],
    ["rebuilding", [0, null, null], { state: "frp" }],
    ["incomplete", [null, 0, null], { state: "ifp" }],
    ["unkept", [null, null, 0], { state: "nnp" }],
    ["waiting", [null, null, null], { state: "ppp" }],
    ["capped", [12_431, 12_000, null], { aggregate: "sum", capped: true, state: "ffp" }],
    ["capped", [12_431, 12_000, null], { aggregate: "p95", capped: true, state: "ffp" }],
    ["capped", [null, null, null], { aggregate: "sum", capped: true, state: "ffp" }],
    ["unsaid", [12_431, 12_000, null], { aggregate: "p95", state: "ffp" }],
    ["none", [0, 0, null], { aggregate: "avg", capped: true, state: "ffp" }],
  ] as const)("does not take for no or few events what is %s", (why, count, told) => {
    // That nothing is known of a window is no sign that nothing came in it.
    const { aggregate = "p95" }: Told = told;
    expect(emptinessOf(plot(UNSAID, count, told), [aggregate])).toEqual({ why, few: null });
  });

  it("does not say that no event matched where there is no series at all", () => {
    // Of a metric whose history is still being counted there is none either.
    const { lines: _, ...nothing } = plot(UNSAID, UNSAID);
    expect(emptinessOf({ ...nothing, lines: [] }, ["avg"])?.why).toBe("nothing");
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
