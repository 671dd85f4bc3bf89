import { describe, expect, it } from "vitest";
import { kindsOf, tileOf } from "../../src/pages/metric/tile";

const METRIC = { name: "orders", by: ["country", "device"], resolution_ms: 10_000 };
const CHOSEN = { aggregate: "p95", window: null, by: ["device"] };

describe("tileOf", () => {
  it("asks for what the page shows", () => {
    // The tile of a chart is that chart.
    expect(tileOf(METRIC, { ...CHOSEN, window: "15m" }, { type: "chart" })).toEqual({
      type: "chart",
      title: "orders p95 by device",
      size: "L",
      metric: "orders",
      aggregate: "p95",
      by: ["device"],
      window: { kind: "sliding", length: "15m" },
    });
  });

  it("asks a number for all series together, over a window", () => {
    // One number cannot be that of several series, nor of a step that nobody chose.
    const tile = tileOf(METRIC, CHOSEN, { type: "number" });
    expect(tile.by).toBeUndefined();
    expect(tile.window?.length).toBe("5m");
    const hourly = { ...METRIC, resolution_ms: 3_600_000 };
    expect(tileOf(hourly, CHOSEN, { type: "number" }).window?.length).toBe("1h");
  });

  it("lists something in a table", () => {
    // A table of the whole would have one row.
    expect(tileOf(METRIC, { ...CHOSEN, by: [] }, { type: "top" }).by).toEqual(["country"]);
    expect(kindsOf({ ...METRIC, by: [] })).not.toContain("top");
  });
});
