import { describe, expect, it } from "vitest";
import { describe as sentence } from "../../src/charts/describe";
import {
  bandsIn,
  marksOf,
  plotOf,
  provisionalFrom,
  quietIn,
  scaleOf,
  spansIn,
} from "../../src/charts/plot";
import { modelOf } from "../../src/live/model";
import type { Cell, WireAnswer } from "../../src/live/wire";

/** Returns a model with a window a minute, one series a row of values. */
function model(rows: readonly (readonly Cell[])[], state = "fffp") {
  const answer: WireAnswer = {
    metric: { name: "m", version: 1, unit: "ms", resolution_ms: 10_000, lateness_ms: 0 },
    epoch: 1,
    rev: 1,
    final_to_ms: null,
    of: rows.length,
    t_ms: Array.from(state, (_, at) => (at + 1) * 60_000),
    series: rows.map((value, k) => ({
      k,
      by: { region: `r${k}` },
      slot: k,
      value,
      low: value,
      high: value.map((v) => (v === null ? null : v + 5)),
      count: value.map(() => 1),
      state,
    })),
  };
  return modelOf(answer);
}

describe("plotOf", () => {
  it("has the unit of the version that answered, and counts series without the others", () => {
    // A page may have read of the version before; `of` counts no others either.
    const { series, ...rest } = model([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
      [9, 9, 9, 9],
    ]);
    const lines = [...series].map(([k, one]) => [k, { ...one, other: k === 2 }] as const);
    const held = { ...rest, of: 500, series: new Map(lines) };
    const plot = plotOf([
      { model: held, aggregate: "p50" },
      { model: held, aggregate: "p95" },
    ]);
    expect([plot.unit, plot.lines.length, plot.shown, plot.of]).toEqual(["ms", 6, 2, 500]);
    expect(plotOf([{ model: held, aggregate: "count" }]).unit).toBe("");
  });

  it("breaks the line where nothing is known", () => {
    // Gaps are gaps, never 0.
    const plot = plotOf([{ model: model([[1, null, 3, 4]]), aggregate: "avg" }]);
    expect([...(plot.lines[0]?.value ?? [])]).toEqual([1, Number.NaN, 3, 4]);
  });

  it("keeps the bounds and the count of an earlier time", () => {
    // An estimate of last week is no more exact than one of today.
    const { series, ...rest } = model([[1, 2, 3, 4]]);
    const [now] = [...series.values()];
    if (!now) throw new Error("there is one");
    const earlier = { offset: "1w", value: now.value, low: now.low, high: now.high };
    const compare = [{ ...earlier, count: now.count, state: now.state }];
    const compared = { ...rest, series: new Map([[0, { ...now, compare }]]) };
    const [ghost] = plotOf([{ model: compared, aggregate: "p95" }]).lines;
    expect(ghost?.ghost).toBe(true);
    expect([...(ghost?.high ?? [])]).toEqual([6, 7, 8, 9]);
    expect([...(ghost?.count ?? [])]).toEqual([1, 1, 1, 1]);
  });

  it("draws no rebuilding and no dropped windows", () => {
    // A shard being recounted has no line.
    const plot = plotOf([{ model: model([[1, 2, 3, 4]], "fnrp"), aggregate: "avg" }]);
    expect([...(plot.lines[0]?.value ?? [])]).toEqual([1, Number.NaN, Number.NaN, 4]);
  });

  it.each([
    ["rate", 3],
    ["distinct(subject)", 3],
    ["theta(subject)", 3],
    ["p95", 4],
  ])(
    "of %s leaves out a window that is not over where half of it would mislead",
    (name, expected) => {
      // What only grows in a window looks like a drop until the window is over.
      const held = { ...model([[1, 2, 3, 4]]), throughMs: 230_000 };
      const plot = plotOf([{ model: held, aggregate: name }]);
      expect(plot.lines[0]?.drawn).toBe(expected);
      expect(plot.lines[0]?.value[3]).toBe(4);
    },
  );

  it("puts several percentiles over the same instants and fills between them", () => {
    // Percentile bands: one hue, a dash each.
    const plot = plotOf([
      { model: model([[1, 1, 1, 1]]), aggregate: "p50" },
      { model: model([[2, 2, 2]], "fff"), aggregate: "p95" },
    ]);
    expect(plot.tMs).toHaveLength(4);
    expect(plot.lines.map((line) => [line.name, line.fillTo, line.stroke.token])).toEqual([
      ["p50", null, "s1"],
      ["p95", "p50:0", "s1"],
    ]);
    expect(plot.lines[1]?.value[3]).toBeNaN();
  });

  it("tells the space between percentiles from the error of each", () => {
    // What is shaded between two lines is no error of either.
    const asked = (aggregate: string) => ({ model: model([[1, 2, 3, 4]]), aggregate });
    const both = bandsIn(plotOf([asked("p50"), asked("p95")]));
    expect([both.between?.name, both.error?.name]).toEqual(["p95", "p50"]);
    const one = bandsIn(plotOf([asked("p95")]));
    expect([one.between, one.error?.name]).toEqual([undefined, "r0"]);
  });

  it("tells several aggregates that are no percentiles apart by color, without a fill", () => {
    // The space between an average and a maximum means nothing.
    const one = { model: model([[1, 1, 1, 1]]), aggregate: "avg" };
    const plot = plotOf([one, { ...one, aggregate: "max" }]);
    expect(plot.lines.map((line) => [line.fillTo, line.stroke.token])).toEqual([
      [null, "s1"],
      [null, "s2"],
    ]);
  });

  it("gives thirty-two slots strokes that all differ", () => {
    // Color and dash: the same line for everybody.
    const rows = Array.from({ length: 32 }, () => [1]);
    const plot = plotOf([{ model: model(rows, "f"), aggregate: "avg" }]);
    const strokes = plot.lines.map(({ stroke }) => `${stroke.token} ${stroke.dash.join()}`);
    expect(new Set(strokes).size).toBe(32);
  });
});

describe("scaleOf", () => {
  it("shows everything, bands included, between round marks", () => {
    // No line ever leaves the chart.
    const plot = plotOf([{ model: model([[120, 480, 617, 300]]), aggregate: "p95" }]);
    const scale = scaleOf(plot, false);
    expect(scale).toEqual({ low: 0, high: 800, step: 200 });
    expect(marksOf(scale)).toEqual([0, 200, 400, 600, 800]);
  });

  it("starts at zero for counts even where all are large", () => {
    // A count's height is its meaning.
    const plot = plotOf([{ model: model([[1_000, 1_001, 1_002, 1_003]]), aggregate: "avg" }]);
    expect(scaleOf(plot, true).low).toBe(0);
    expect(scaleOf(plot, false).low).toBeGreaterThan(900);
  });

  it("ends at what cannot be exceeded", () => {
    // There is no 102 percent of a processor.
    const plot = plotOf([{ model: model([[91, 92, 93, 95]]), aggregate: "avg" }]);
    expect(scaleOf(plot, true, 100)).toEqual({ low: 0, high: 100, step: 25 });
    const small = plotOf([{ model: model([[1, 2, 3, 4]]), aggregate: "avg" }]);
    expect(scaleOf(small, true, 100).high).toBeLessThan(20);
  });

  it("keeps a limit in sight that no value comes near", () => {
    // How far away the limit is, is what one looks for.
    const plot = plotOf([{ model: model([[90, 100, 110, 120]]), aggregate: "p95" }]);
    expect(scaleOf(plot, false, undefined, [400]).high).toBeGreaterThanOrEqual(400);
    expect(scaleOf(plot, false, undefined, [-20]).low).toBeLessThanOrEqual(-20);
  });

  it("stands without any data and with one value", () => {
    // An empty chart has an axis, too.
    expect(scaleOf(plotOf([]), true)).toEqual({ low: 0, high: 1, step: 0.25 });
    const flat = scaleOf(plotOf([{ model: model([[0, 0, 0, 0]]), aggregate: "avg" }]), true);
    expect(flat.high).toBeGreaterThan(flat.low);
  });
});

describe("states", () => {
  it("are found as spans of time", () => {
    // The hatch begins where the last settled window ends.
    const plot = plotOf([{ model: model([[1, 2, 3, 4, 5]], "fiipp"), aggregate: "avg" }]);
    expect(provisionalFrom(plot)).toBe(180_000);
    expect(spansIn(plot, "i")).toEqual([[60_000, 180_000]]);
  });
});

describe("quiet grounds", () => {
  it("have a word each, and only where they are", () => {
    // A ground without a word reads as a warning of nobody knows what.
    const of = (state: string) =>
      quietIn(plotOf([{ model: model([[1, 2, 3, 4]], state), aggregate: "avg" }]));
    expect(of("iifp")).toEqual([["i", "incomplete"]]);
    expect(of("rrff")).toEqual([["r", "rebuilding"]]);
    expect(of("ffff")).toEqual([]);
  });
});

describe("sentence", () => {
  it("says what a chart shows", () => {
    // Who does not see the chart hears its point.
    const plot = plotOf([{ model: model([[100, 300, 200, null]], "ffff"), aggregate: "p95" }]);
    expect(sentence("Latency", "the last hour", plot, "ms")).toBe(
      "Latency over the last hour: r0 is 200 ms, between 100 ms and 300 ms",
    );
  });

  it("says nothing of a window that is not drawn", () => {
    // The open window of a steady count is no minimum.
    const held = { ...model([[300, 300, 300, 20]]), throughMs: 230_000 };
    const plot = plotOf([{ model: held, aggregate: "count" }]);
    expect(sentence("Hits", "the last hour", plot, "")).toBe(
      "Hits over the last hour: r0 is 300, between 300 and 300",
    );
  });
});
