import { describe, expect, it } from "vitest";
import { lineStep, numberAsked, numberStep } from "../../src/lib/number-query";

const RANGES = [
  { value: "15m", ms: 900_000 },
  { value: "1h", ms: 3_600_000 },
  { value: "24h", ms: 86_400_000 },
];

describe("lineStep", () => {
  it.each([
    [10_000, 3_600_000, 10_000],
    [10_000, 21_600_000, 60_000],
    [60_000, 900_000, 60_000],
  ])("of panes of %d ms over %d ms is %d", (resolution, range, step) => {
    // Whole panes, and never thousands of points for one line.
    expect(lineStep(resolution, range)).toBe(step);
  });
});

describe("numberStep", () => {
  it.each([
    [10_000, 300_000, 10_000],
    [1_000, 3_600_000, 10_000],
    [10_000, 86_400_000, 300_000],
    [10_000, 2 * 86_400_000, 600_000],
    [10_000, 7 * 86_400_000, 1_800_000],
    [10_000, 130_000, 10_000],
    [7_000, 70_000, 7_000],
    [3_600_000, 3_600_000, 3_600_000],
  ])("of panes of %d ms in a window of %d ms is %d", (resolution, length, step) => {
    // Whole steps make up the window, so the one before it is in the answer, too; and panes of a
    // minute make up the step, which are kept for longer than those of ten seconds.
    expect(numberStep(resolution, length)).toBe(step);
    expect(length % step).toBe(0);
  });
});

describe("numberAsked", () => {
  const tile = { type: "number", metric: "m", aggregate: "count", window: "5m" } as const;

  it("asks for windows that do not depend on the range", () => {
    // Over 24 hours the newest window would end minutes ahead, and hold a part of its events.
    const asked = RANGES.map((range) => numberAsked(tile, "count", 10_000, range));
    for (const { number, windowMs, backMs } of asked) {
      expect([number.step, number.window]).toEqual(["10s", { kind: "sliding", length: "5m" }]);
      expect([windowMs, backMs]).toEqual([300_000, 900_000]);
    }
    expect(asked.map(({ line }) => [line.step, line.range])).toEqual([
      ["10s", { last: "15m" }],
      ["10s", { last: "1h" }],
      ["5m", { last: "24h" }],
    ]);
  });

  it("asks once where the line says the number, too", () => {
    // A subscription more for each tile would be many.
    const same = RANGES.map((range) => {
      const { number, line } = numberAsked(tile, "count", 10_000, range);
      return number === line;
    });
    expect(same).toEqual([true, true, false]);
  });

  it("is of five minutes where the tile names no window", () => {
    // A step of a chart is a length that nobody chose.
    const { window: _, ...bare } = tile;
    const asked = numberAsked(bare, "count", 7_000, { value: "24h", ms: 86_400_000 });
    expect(asked.windowMs).toBe(301_000);
  });
});
