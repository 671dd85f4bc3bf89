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
  backMs: null,
  staleMs: null,
  lostMs: null,
};

interface Told {
  readonly unit?: string;
  readonly stepMs?: number;
  readonly capped?: boolean;
}

/** Returns a feed whose windows end a minute apart, the last one open, with these columns. */
function feed(columns: Partial<WireAnswer["series"][number]>, told: Told = {}): Feed {
  const { unit = "ms", stepMs = 60_000, capped = false } = told;
  const length = columns.state?.length ?? 3;
  const model = modelOf({
    metric: { name: "m", version: 1, unit, resolution_ms: 10_000, lateness_ms: 120_000 },
    epoch: 1,
    rev: 1,
    final_to_ms: null,
    fresh: { processed_through_ms: T0 + (length - 1) * stepMs + 5_000 },
    of: 1,
    notes: capped ? [{ code: "capped", message: "more series than the metric keeps" }] : [],
    t_ms: Array.from({ length }, (_, at) => T0 + (at + 1) * stepMs),
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
    const over = { ...close, value: [1, 1_000, 1], low: [1, 992, 1], high: [1, 1_008, 1] };
    expect(numberView(feed(over), distinct).detail).toBe("± 0.8 % (HLL)");
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

  it.each(["rate", "count", "sum", "distinct(subject)", "theta(subject)"])(
    "tells a %s of the newest window that is over, and compares two that are",
    (aggregate) => {
      // Half a window would read as a drop of a stream that is steady.
      const held = [20, 20, 4];
      const known = { value: held, low: held, high: held, count: held };
      const view = numberView(feed(known), { ...context, aggregate });
      expect([view.value, view.change]).toEqual(["20", ""]);
    },
  );

  it("tells the open window where it is as good as whole, and says that it is open", () => {
    // An event is seen at once in an hour that has lasted for 59 minutes and more.
    const held = [3_600, 3_600, 3_590];
    const long = feed({ value: held, low: held, high: held, count: held }, { stepMs: 30_000 });
    const hour = { ...context, aggregate: "count", windowMs: 3_600_000 };
    expect(numberView(long, hour)).toMatchObject({
      exact: 3_590,
      open: true,
      detail: "exact so far, open until 14:31:30",
    });
    const short = { ...hour, windowMs: 300_000 };
    expect(numberView(long, short).exact).toBe(3_600);
  });

  it("compares two windows that are over while the open one is shown", () => {
    // An hour that has lasted for 58 minutes is not less than the one before.
    const held = Array.from({ length: 122 }, (_, at) => (at === 121 ? 3_500 : 3_600));
    const state = "p".repeat(122);
    const long = feed(
      { value: held, low: held, high: held, count: held, state },
      { stepMs: 30_000 },
    );
    const view = numberView(long, { ...context, aggregate: "count", windowMs: 3_600_000 });
    expect([view.exact, view.change, view.versus]).toEqual([3_500, "", "the window before: 3,600"]);
  });

  it("tells the newest window that is over where nobody chose how long it is", () => {
    // A list of metrics shows each by the step of its line.
    const held = { value: [20, 21, 4], low: [20, 21, 4], high: [20, 21, 4], count: [9, 9, 2] };
    expect(numberView(feed(held), { ...context, windowMs: null }).value).toBe("21");
  });

  it("tells a change of a percentage in points", () => {
    // 2 % after 1 % has not risen by 100 %.
    const held = { value: [1, 1, 2.5], low: [1, 1, 2.5], high: [1, 1, 2.5], count: [9, 9, 9] };
    const view = numberView(feed(held, { unit: "%" }), { ...context, aggregate: "avg" });
    expect(view.change).toBe("▲ 1.5 pt");
  });

  it("shows nothing that lies too far back", () => {
    // What a number is does not depend on how long the line beside it is.
    const held = { value: [7, null, null], low: [7, null, null], high: [7, null, null] };
    const sparse = feed({ ...held, count: [9, 0, 0], state: "fff" });
    expect(numberView(sparse, context).value).toBe("7");
    const near = { ...context, backMs: 60_000, rangeWords: "the last minute" };
    expect(numberView(sparse, near)).toMatchObject({
      state: "empty",
      detail: "no events in the last minute",
    });
  });

  it.each([
    ["not known, since the metric is capped", [9, 9, 12_431], { capped: true }, "ffp"],
    ["not known", [9, 9, 12_431], {}, "ffp"],
    ["not kept", [null, null, null], {}, "nnn"],
    ["not counted yet", [null, null, null], {}, "ppp"],
    ["not known, since the metric is capped", [null, null, null], { capped: true }, "fff"],
    ["rebuilding", [null, null, null], {}, "rrr"],
  ])("says %s, and not that events are none or few", (detail, count, told, state) => {
    // What is not known is told as that.
    const view = numberView(feed({ value: [null, null, null], count, state }, told), context);
    expect([view.value, view.detail]).toEqual(["–", detail]);
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
