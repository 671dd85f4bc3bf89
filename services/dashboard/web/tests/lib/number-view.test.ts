import { describe, expect, it } from "vitest";
import { numberView, type TileContext } from "../../src/lib/number-view";
import type { Feed } from "../../src/live/feed";
import { modelOf } from "../../src/live/model";
import type { WireAnswer } from "../../src/live/wire";

const T0 = Date.UTC(2026, 10, 20, 14, 30);
const context: TileContext = {
  aggregate: "p95",
  windowMs: 60_000,
  rangeWords: "the last hour",
  zone: "utc",
  nowMs: T0 + 180_000,
  throughMs: T0 + 125_000,
  staleMs: null,
  lostMs: null,
};

/** Returns a feed whose windows end a minute apart, with these columns. */
function feed(columns: Partial<WireAnswer["series"][number]>, unit = "ms"): Feed {
  const length = columns.state?.length ?? 3;
  const model = modelOf({
    metric: { name: "m", version: 1, unit, resolution_ms: 10_000, lateness_ms: 120_000 },
    epoch: 1,
    rev: 1,
    final_to_ms: null,
    of: 1,
    t_ms: Array.from({ length }, (_, at) => T0 + (at + 1) * 60_000),
    series: [{ k: 0, by: {}, slot: 0, state: "ffp", ...columns }],
  });
  return { model, partial: null, nextPart: 1, problem: null };
}

describe("numberView", () => {
  it("tells the newest value with its bounds, and that it may still change", () => {
    // A provisional number is never drawn as if it were settled.
    const view = numberView(
      feed({
        value: [200, 400, 617.2],
        low: [200, 400, 592],
        high: [200, 400, 648],
        count: [9, 9, 9],
      }),
      context,
    );
    expect(view).toMatchObject({
      state: "live",
      value: "617",
      unit: "ms",
      open: true,
      change: "▲ 54.3 %",
    });
    expect(view.detail).toBe("592 – 648 ms by the sketch, final at 14:35:00");
    expect(view.versus).toBe("the window before: 400");
  });

  it("says exact where it is, and how wrong a distinct count may be", () => {
    // Approximation is stated.
    const exact = {
      value: [1, 1, 2],
      low: [1, 1, 2],
      high: [1, 1, 2],
      count: [1, 1, 2],
      state: "fff",
    };
    expect(numberView(feed(exact), { ...context, aggregate: "count" }).detail).toBe("exact");
    const close = { ...exact, value: [1, 1, 1_000], low: [1, 1, 992], high: [1, 1, 1_008] };
    const distinct = { ...context, aggregate: "distinct(subject)" };
    expect(numberView(feed(close), distinct).detail).toBe("± 0.8 % (HLL)");
  });

  it("shows a dash and why, never 0, where nothing is known", () => {
    // Empty is a state of its own.
    const view = numberView(feed({ value: [null, null, null], count: [0, 0, null] }), context);
    expect(view).toMatchObject({
      state: "empty",
      value: "–",
      detail: "no events in the last hour",
    });
  });

  it("says few where events are there but too few for a percentile", () => {
    // No number is better than one that means nothing.
    const view = numberView(feed({ value: [null, null, null], count: [0, 0, 12] }), context);
    expect(view).toMatchObject({ value: "few", detail: "12 events are too few for it" });
  });

  it("tells since when it is stale, and keeps the last value", () => {
    // Old is visible.
    const known = { value: [1, 2, 3], low: [1, 2, 3], high: [1, 2, 3], count: [1, 1, 1] };
    const view = numberView(feed(known), { ...context, staleMs: T0 + 136_000 });
    expect(view).toMatchObject({ state: "stale", value: "3", open: false });
    expect(view.detail).toBe("as of 14:32:16, 44 s ago");
  });

  it("tells when it was last seen while the server is away", () => {
    // This screen, not the system.
    const known = { value: [1, 2, 3], low: [1, 2, 3], high: [1, 2, 3], count: [1, 1, 1] };
    const view = numberView(feed(known), { ...context, lostMs: T0 + 118_000, staleMs: T0 });
    expect(view).toMatchObject({ state: "disconnected", detail: "last seen 14:31:58" });
  });

  it("keeps the error of an estimate while it is old", () => {
    // Nobody takes a sketch's number for exact because its server is away.
    const known = { value: [1, 2, 617], low: [1, 2, 592], high: [1, 2, 648], count: [9, 9, 9] };
    const band = "592 – 648 ms by the sketch";
    const stale = numberView(feed(known), { ...context, staleMs: T0 + 136_000 });
    expect(stale).toMatchObject({ band, detail: `as of 14:32:16, 44 s ago, ${band}` });
    const gone = numberView(feed(known), { ...context, lostMs: T0 + 118_000 });
    expect(gone).toMatchObject({ band, detail: `last seen 14:31:58, ${band}` });
  });

  it("tells a rate of the newest window that is over", () => {
    // Half a window would read as a drop.
    const known = { value: [20, 21, 4], low: [20, 21, 4], high: [20, 21, 4], count: [20, 21, 4] };
    expect(numberView(feed(known), { ...context, aggregate: "rate" }).value).toBe("21");
    expect(numberView(feed(known), { ...context, aggregate: "count" }).value).toBe("4");
  });

  it("gives the server's own words for a refusal", () => {
    // One broken tile says what is wrong with it.
    const problem = { status: 422, code: "query_invalid", message: "no such field" };
    const view = numberView({ ...feed({}), problem }, context);
    expect(view).toMatchObject({ state: "error", value: "–", detail: "no such field" });
  });

  it("shows incomplete and rebuilding windows as what they are", () => {
    // Neither is a final number.
    const known = { value: [1, 2, 3], low: [1, 2, 3], high: [1, 2, 3], count: [1, 1, 1] };
    expect(numberView(feed({ ...known, state: "ffi" }), context).state).toBe("incomplete");
    const rebuilding = { value: [1, 2, null], count: [1, 1, null], state: "ffr" };
    expect(numberView(feed(rebuilding), context)).toMatchObject({
      state: "rebuilding",
      value: "–",
    });
  });
});
