import { describe, expect, it } from "vitest";
import { endsText, estimateText, withinText } from "../../src/lib/ends";

const latency = { metric: "latency", unit: "ms" };

describe("an estimate in words", () => {
  it("has its ends behind it, and what is exact has none", () => {
    // Approximation is stated; of an exact number there is nothing to be said.
    expect(estimateText({ value: 617, low: 592, high: 648 }, latency)).toBe(
      "617 ms (592 – 648 ms)",
    );
    expect(estimateText({ value: 12, low: 12, high: 12 }, latency)).toBe("12 ms");
    expect(endsText({ value: 40, low: 39, high: 41 }, "")).toBe("39 – 41");
  });

  it("is told without ends where none are known", () => {
    // Nothing was told, or by a release that did not record them.
    expect(estimateText({ value: 617 }, latency)).toBe("617 ms");
    expect(estimateText({ value: null, low: null, high: null }, latency)).toBe("–");
  });

  it("is a length of a signal, which is exact", () => {
    const lag = { metric: "weir.lag", unit: "s" };
    expect(estimateText({ value: 90, low: 90, high: 90 }, lag)).toBe("90 s");
  });

  it("says exact where it has a column of its own", () => {
    // An empty cell would look as if nothing were known.
    expect(withinText(592, 648, "ms")).toBe("592 – 648 ms");
    expect(withinText(12, 12, "ms")).toBe("exact");
  });
});
