import { describe, expect, it } from "vitest";
import {
  bounds,
  change,
  exact,
  integer,
  isList,
  label,
  percent,
  pieces,
  short,
  unitOf,
  withUnit,
} from "../../src/lib/numbers";

describe("short", () => {
  it.each([
    [617.2, "617"],
    [1.624, "1.62"],
    [0, "0"],
    [8_123, "8,120"],
    [18_240, "18.2 k"],
    [999_999, "1 M"],
    [9_999.6, "10 k"],
    [2_340_000_000, "2.34 G"],
    [-45_000, "-45 k"],
    [0.000_123_4, "0.000123"],
  ])("tells %d as %s", (value, text) => {
    // Three digits, whatever the size.
    expect(short(value)).toBe(text);
  });

  it.each([null, undefined, Number.NaN, Number.POSITIVE_INFINITY])("shows a dash for %s", (v) => {
    // What is not known is a dash, never 0.
    expect(short(v)).toBe("–");
  });
});

describe("exact", () => {
  it("keeps every digit", () => {
    // The tooltip is where one reads the number itself.
    expect(exact(11_402.25)).toBe("11,402.25");
  });
});

describe("units", () => {
  it("belong to the aggregate first, then to the metric", () => {
    // A count of milliseconds is a count.
    expect(unitOf("p95", "ms")).toBe("ms");
    expect(unitOf("rate", "ms")).toBe("/s");
    expect(unitOf("distinct(subject)", "ms")).toBe("");
    expect(unitOf("avg", null)).toBe("");
  });

  it("take the thousands along where they are bytes", () => {
    // 172 kB, not 172 k B; an axis leaves out "per second", its title says it.
    expect(pieces(172_400, "B")).toEqual({ text: "172", unit: "kB" });
    expect(withUnit(7_500_000, "B/s")).toBe("7.5 MB/s");
    expect(label(7_500_000, "B/s")).toBe("7.5 MB");
    expect(label(617, "ms")).toBe("617");
  });

  it("stand after a space, except a slash", () => {
    // "214/s", but "617 ms"; a dash has no unit.
    expect(withUnit(214, "/s")).toBe("214/s");
    expect(withUnit(617, "ms")).toBe("617 ms");
    expect(withUnit(null, "ms")).toBe("–");
    expect(bounds(592, 648, "ms")).toBe("592 – 648 ms");
  });
});

describe("change and percent", () => {
  it("carry a sign and a percent sign", () => {
    // A true minus, not a hyphen.
    expect(change(56)).toBe("+56");
    expect(change(-1.5)).toBe("−1.5");
    expect(percent(0.5812)).toBe("58.1 %");
  });
});

describe("aggregates", () => {
  it("counts texts in no unit, and tells a spread and a last value in the metric's", () => {
    // A theta is a count; a standard deviation is in the unit of its values.
    for (const name of ["theta(subject)", "distinct", "top(data.page, 3)", "count"]) {
      expect(unitOf(name, "ms")).toBe("");
    }
    expect([unitOf("stddev", "ms"), unitOf("last", "ms")]).toEqual(["ms", "ms"]);
  });

  it("knows which are lists", () => {
    // A list of texts has no line and no limit.
    expect(["top(data.page, 3)", "top", "theta(subject)", "topmost"].map(isList)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe("a zero", () => {
  it("has no sign, however it came to be", () => {
    // A sum of what cancels out, or a small loss that rounding takes away.
    expect([short(-0), exact(-0), integer(-0.3), withUnit(-0, "ms")]).toEqual([
      "0",
      "0",
      "0",
      "0 ms",
    ]);
    expect(short(-0.5)).toBe("-0.5");
  });
});
