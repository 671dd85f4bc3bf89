import { describe, expect, it } from "vitest";
import type { Alert, Rule } from "../../src/api/shapes";
import type { Plot } from "../../src/charts/plot";
import { firingOn, limitsOn, rulesOn } from "../../src/charts/watched";

const MINUTE_MS = 60_000;
const rule = (members: Partial<Rule>): Rule =>
  ({
    name: "slow_checkout",
    metric: "latency",
    aggregate: "p95",
    side: "above",
    limit: 400,
    unit: "ms",
    mode: "active",
    window_ms: 5 * MINUTE_MS,
    ...members,
  }) as Rule;
const plot = (...values: readonly number[]): Plot =>
  ({ lines: [{ value: Float64Array.from(values), drawn: values.length }] }) as unknown as Plot;
const alert = (members: Partial<Alert>): Alert =>
  ({ rule: "slow_checkout", state: "firing", since_ms: 100, at_ms: 200, ...members }) as Alert;

describe("rulesOn", () => {
  const shown = { metric: "latency", aggregates: ["p50", "p95"], windowMs: MINUTE_MS };

  it("are those of the metric whose number is shown, unless they are stopped", () => {
    // A percentile over five minutes and one over one minute are held against the same limit.
    const rules = [
      rule({ name: "a" }),
      rule({ name: "b", metric: "other" }),
      rule({ name: "c", aggregate: "p99" }),
      rule({ name: "d", mode: "stopped" }),
      rule({ name: "e", mode: "shadow" }),
    ];
    expect(rulesOn(rules, shown).map((one) => one.name)).toEqual(["a", "e"]);
  });

  it("leave out a limit on what grows with another window", () => {
    // 300 errors in five minutes are not 300 in one.
    const counting = { ...shown, aggregates: ["count"] };
    const errors = rule({ aggregate: "count", limit: 300 });
    expect(rulesOn([errors], counting)).toEqual([]);
    expect(rulesOn([errors], { ...counting, windowMs: null })).toEqual([]);
    expect(rulesOn([errors], { ...counting, windowMs: 5 * MINUTE_MS })).toEqual([errors]);
  });
});

describe("limitsOn", () => {
  it("say which rule fires beyond them, both ends of a span", () => {
    expect(limitsOn([rule({})], plot(100, 390))).toEqual([
      { value: 400, text: "Slow checkout: above 400 ms", tone: "limit", below: false },
    ]);
    const span = rule({ side: "outside", limit: [50, 400] });
    expect(limitsOn([span], plot(100, 390)).map((one) => [one.text, one.below])).toEqual([
      ["Slow checkout: below 50 ms", true],
      ["Slow checkout: above 400 ms", false],
    ]);
  });

  it("leave out what would flatten the lines, and all where there are none", () => {
    // A chart of 1 to 3 with a limit at 400 would show neither.
    expect(limitsOn([rule({})], plot(1, 3))).toEqual([]);
    expect(limitsOn([rule({})], plot(200, 210))).toHaveLength(1);
    expect(limitsOn([rule({})], plot(Number.NaN))).toEqual([]);
  });
});

describe("firingOn", () => {
  it("is from the first window beyond to now, of the rules that are shown", () => {
    // An alert of another metric says nothing about these lines.
    const open = [alert({}), alert({ state: "recovering", since_ms: 10 }), alert({ rule: "b" })];
    expect(firingOn([rule({})], open, 1_000)).toEqual([
      [100, 1_000],
      [10, 1_000],
    ]);
  });
});
