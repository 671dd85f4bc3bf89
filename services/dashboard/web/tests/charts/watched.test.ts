import { describe, expect, it } from "vitest";
import type { Alert, Rule } from "../../src/api/shapes";
import type { Plot } from "../../src/charts/plot";
import { firingOn, limitsOn, rulesOn, shownOf } from "../../src/charts/watched";
import { askingOf } from "../../src/lib/query";

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
    by: [],
    where: [],
    ...members,
  }) as Rule;
const plot = (...values: readonly number[]): Plot =>
  ({ lines: [{ value: Float64Array.from(values), drawn: values.length }] }) as unknown as Plot;
const alert = (members: Partial<Alert>): Alert =>
  ({ rule: "slow_checkout", state: "firing", since_ms: 100, at_ms: 200, ...members }) as Alert;

describe("rulesOn", () => {
  const shown = {
    metric: "latency",
    aggregates: ["p50", "p95"],
    windowMs: MINUTE_MS,
    by: [],
    where: [],
  };

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

  it.each(["count", "sum", "rate", "distinct(user)", "min", "max", "avg", "p95"])(
    "leave out a limit on %s of other groups",
    (aggregate) => {
      // 300 a region are not 300 in all; nor is a region too slow where all of them are.
      const on = (ruleBy: readonly string[], chartBy: readonly string[]) => {
        const one = rule({ aggregate, by: [...ruleBy] });
        const windowMs = one.window_ms;
        return rulesOn([one], { ...shown, aggregates: [aggregate], windowMs, by: chartBy }).length;
      };
      expect(on(["region"], [])).toBe(0);
      expect(on([], ["region"])).toBe(0);
      expect(on(["region"], ["shop"])).toBe(0);
      expect(on(["region", "shop"], ["region"])).toBe(0);
      expect(on(["region", "shop"], ["shop", "region"])).toBe(1);
      expect(on(["data.region"], ["region"])).toBe(1);
    },
  );

  it.each([
    ["the same", [["region", "=", "eu"]], [["region", "=", "eu"]], 1],
    ["another value", [["region", "=", "us"]], [["region", "=", "eu"]], 0],
    ["another dimension", [["shop", "=", "eu"]], [["region", "=", "eu"]], 0],
    ["another operator", [["region", "!=", "eu"]], [["region", "=", "eu"]], 0],
    ["the rule's alone", [["region", "=", "eu"]], [], 0],
    ["the chart's alone", [], [["region", "=", "eu"]], 0],
    ["null and its text", [["region", "=", null]], [["region", "=", "null"]], 0],
    ["a path", [["data.region", "=", "eu"]], [["region", "=", "eu"]], 1],
    ["one of one", [["region", "in", ["eu"]]], [["region", "=", "eu"]], 1],
    ["values in another order", [["r", "in", ["a", "b"]]], [["r", "in", ["b", "a", "b"]]], 1],
    ["more values", [["r", "in", ["a", "b", "c"]]], [["r", "in", ["a", "b"]]], 0],
    ["one list as a text", [["r", "in", ["a", "b"]]], [["r", "in", ["a,b", "c"]]], 0],
    [
      "a part",
      [
        ["r", "=", "a"],
        ["s", "=", "b"],
      ],
      [["r", "=", "a"]],
      0,
    ],
    [
      "another order",
      [
        ["r", "=", "a"],
        ["s", "=", "b"],
      ],
      [
        ["s", "=", "b"],
        ["r", "=", "a"],
      ],
      1,
    ],
  ] as const)("are those with the chart's filter: %s", (_, ofRule, ofChart, found) => {
    // A rule for the shops of one region says nothing about those of another.
    const one = rule({ where: ofRule.map((condition) => [...condition]) });
    expect(rulesOn([one], { ...shown, where: ofChart })).toHaveLength(found);
  });
});

describe("shownOf", () => {
  it("is what a tile asks: its window, its groups and its filter", () => {
    const tile = {
      type: "chart" as const,
      metric: "latency",
      window: "5m",
      by: ["region"],
      where: [["shop", "=", "a"], { dimension: "route", op: "like", value: "/p%" }],
    };
    expect(shownOf(askingOf(tile, "p50"), ["p50", "p95"])).toEqual({
      metric: "latency",
      aggregates: ["p50", "p95"],
      windowMs: 5 * MINUTE_MS,
      by: ["region"],
      where: [
        ["shop", "=", "a"],
        ["route", "like", "/p%"],
      ],
    });
    const bare = shownOf(askingOf({ type: "number", metric: "latency" }, "p95"), ["p95"]);
    expect(bare).toEqual({ ...bare, windowMs: null, by: [], where: [] });
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
