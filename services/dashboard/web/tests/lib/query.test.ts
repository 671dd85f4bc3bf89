import { describe, expect, it } from "vitest";
import { aggregatesOf, askingOf, queryOf, windowLength } from "../../src/lib/query";

describe("queryOf", () => {
  it("asks for a tile's line, with the largest series and the rest where it splits", () => {
    // A tile is a query without its range.
    const tile = {
      type: "chart",
      metric: "requests",
      aggregate: "rate",
      by: ["status"],
      where: [{ dimension: "method", op: "=", value: "GET" }],
      window: { kind: "sliding", length: "1m" },
    } as const;
    expect(queryOf(askingOf(tile, "rate"), "6h")).toEqual({
      metric: "requests",
      aggregate: "rate",
      by: ["status"],
      limit: { top: 8, other: true },
      where: [["method", "=", "GET"]],
      window: { kind: "sliding", length: "1m" },
      range: { last: "6h" },
    });
  });

  it("lets a number slide, so that it always covers the newest whole window", () => {
    // "Visitors in 5 minutes" means the last five.
    const tile = { type: "number", metric: "m", aggregate: "count", window: "5m" } as const;
    expect(askingOf(tile, "count").window).toEqual({ kind: "sliding", length: "5m" });
    expect(askingOf({ ...tile, type: "chart" }, "count").window?.kind).toBe("tumbling");
  });
});

describe("windowLength", () => {
  it("reads every way in which a board may write it", () => {
    // Text, an object, or the canonical milliseconds.
    const tile = { type: "number" } as const;
    expect(windowLength({ ...tile, window: "5m" })).toBe("5m");
    expect(windowLength({ ...tile, window: { length: "1m" } })).toBe("1m");
    expect(windowLength({ ...tile, window: { length: 60_000 } })).toBe("1m");
    expect(windowLength(tile)).toBeNull();
  });
});

describe("aggregatesOf", () => {
  it("prefers several over one", () => {
    // Several percentiles make bands.
    const tile = { type: "chart", aggregate: "avg", aggregates: ["p50", "p95"] } as const;
    expect(aggregatesOf(tile)).toEqual(["p50", "p95"]);
    expect(aggregatesOf({ type: "chart", aggregate: "avg" })).toEqual(["avg"]);
  });
});
