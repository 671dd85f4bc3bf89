import { describe, expect, it, vi } from "vitest";
import { type LimitLine, placeOf } from "../../src/charts/limits";
import type { Area, Scene } from "../../src/charts/paint";
import { paintLines } from "../../src/charts/paint";
import { plotOf } from "../../src/charts/plot";
import { modelOf } from "../../src/live/model";
import type { Correction } from "../../src/live/wire";

// Colors are asked of a page, which is not there.
vi.mock("../../src/lib/palette", async (original) => ({
  ...(await original<typeof import("../../src/lib/palette")>()),
  color: (token: string) => token,
}));

const LATE: Correction = {
  t_ms: 60_000,
  k: 0,
  was: 480,
  was_low: 480,
  was_high: 480,
  is: 512,
  is_low: 512,
  is_high: 512,
  events: 3,
  late_ms: 1_200_000,
};
const AREA: Area = { left: 0, top: 0, width: 600, height: 600, x: (t) => t / 1000, y: (v) => v };

/** Paints a line with one correction and returns what was written, and where lines went. */
const painted = (one: Partial<Correction>, [low, high]: readonly [number, number]) =>
  paintedAll([{ ...LATE, is_low: low, is_high: high, ...one }]);

/** Paints lines with corrections. */
function paintedAll(corrections: readonly Correction[], limits: readonly LimitLine[] = []) {
  const values = [512, 500];
  const of = { by: {}, slot: 0, value: values, low: values, high: values };
  const model = modelOf({
    metric: { name: "m", version: 1, unit: "ms", resolution_ms: 60_000, lateness_ms: 0 },
    epoch: 1,
    rev: 1,
    final_to_ms: 120_000,
    of: 2,
    t_ms: [60_000, 120_000],
    series: [0, 1].map((k) => ({ ...of, k, count: [9, 9], state: "ff" })),
    corrections: [...corrections],
  });
  const texts: string[] = [];
  const places: string[] = [];
  const words: { text: string; left: number; right: number; y: number }[] = [];
  const pen = new Proxy({} as CanvasRenderingContext2D, {
    get: (_, name) =>
      ({
        fillText: (text: string, right: number, y: number) => {
          texts.push(text);
          words.push({ text, left: right - 6 * text.length, right, y });
        },
        measureText: (text: string) => ({ width: 6 * text.length }),
        lineTo: (x: number, y: number) => places.push(`${x},${y}`),
      })[name as string] ?? (() => undefined),
    set: () => true,
  });
  const plot = plotOf([{ model, aggregate: "p99" }]);
  const reserved = limits.map((one) => placeOf(AREA, one));
  paintLines(pen, AREA, { plot, labelled: false } as unknown as Scene, reserved);
  return { texts, places, words };
}

describe("the mark of a correction", () => {
  it("says by how much an exact number changed", () => {
    // Nothing is left open.
    const { texts, places } = painted({}, [512, 512]);
    expect(texts).toEqual(["+32, 3 events 20 min late"]);
    expect(places).not.toContain("64,480");
  });

  it("says of an estimate what it was, what it is, and between what", () => {
    // The difference of two estimates would look exact.
    const { texts, places } = painted({ was_low: 466, was_high: 494 }, [498, 530]);
    expect(texts).toEqual(["480 → 512 (498 – 530), 3 events 20 min late"]);
    // From end to end of what it was, with a bar at each.
    expect(places).toEqual(expect.arrayContaining(["60,494", "64,466", "64,494"]));
  });

  it("does so where one of the two is exact", () => {
    // Of few values the percentile is one of them; of more it is not.
    expect(painted({}, [498, 530]).texts).toEqual(["480 → 512 (498 – 530), 3 events 20 min late"]);
    const before = painted({ was_low: 466, was_high: 494 }, [512, 512]);
    expect(before.texts).toEqual(["480 → 512, 3 events 20 min late"]);
  });

  it("says what it is where nothing is known from before", () => {
    // As of an expression, or of several panes.
    const unknown = { was: null, was_low: null, was_high: null };
    expect(painted(unknown, [512, 512]).texts).toEqual(["512, 3 events 20 min late"]);
    const { texts } = painted(unknown, [498, 530]);
    expect(texts).toEqual(["512 (498 – 530), 3 events 20 min late"]);
  });

  it("tells the newest of many, and no two over each other", () => {
    // As after a night without a driver: each window of each line was corrected.
    const late = Array.from({ length: 540 }, (_, at) => ({
      ...LATE,
      k: at % 2,
      t_ms: 60_000 + 1_000 * (540 - at),
      is: 512 + (at % 2) * 4,
    }));
    const { words } = paintedAll(late);
    expect(words.length).toBeGreaterThan(1);
    expect(words.length).toBeLessThanOrEqual(6);
    expect(words[0]?.right).toBe(591);
    for (const [at, one] of words.entries()) {
      expect(one.left).toBeGreaterThanOrEqual(AREA.left);
      for (const other of words.slice(at + 1)) {
        const apart = one.left >= other.right || other.left >= one.right;
        expect(apart || Math.abs(one.y - other.y) >= 13).toBe(true);
      }
    }
  });

  it("is told on its other side where there is no room", () => {
    const { words } = painted({}, [512, 512]);
    expect(words.map(({ left }) => left)).toEqual([69]);
  });

  it("is not told where the sentence of a limit stands", () => {
    // Both would be written over each other; the mark stays, and the table tells it.
    const told = (limit: Omit<LimitLine, "text">) =>
      paintedAll([LATE], [{ text: "fire above 509 ms", ...limit }]).texts.length;
    expect(told({ value: 509, tone: "limit" })).toBe(0);
    expect(told({ value: 488, tone: "recover" })).toBe(0);
    expect(told({ value: 540, tone: "limit" })).toBe(1);
  });
});
