import { expect, test } from "vitest";
import { figureNames, figureOf, nameOf, shareBeyond } from "../../src/pages/metric/late";

const LATE = [
  { than_ms: 0, events: 90, share: 0.9 },
  { than_ms: 60_000, events: 10, share: 0.1 },
  { than_ms: 600_000, events: 1, share: 0.01 },
];

test("a share is that of the longest length told that is not above what is allowed", () => {
  expect(shareBeyond({ events: 100, late: LATE }, 60_000)?.share).toBe(0.1);
  expect(shareBeyond({ events: 100, late: LATE }, 599_999)?.share).toBe(0.1);
  expect(shareBeyond({ events: 100, late: LATE }, 600_000)?.share).toBe(0.01);
});

test("without events nothing is said", () => {
  expect(shareBeyond({ events: 0, late: LATE }, 60_000)).toBeNull();
});

test("a series is called by the values of its dimensions", () => {
  expect(nameOf({ by: { region: "eu", route: null }, other: false })).toBe("eu · null");
  expect(nameOf({ by: {}, other: false })).toBe("all");
  expect(nameOf({ by: {}, other: true })).toBe("other");
});

const ROW = {
  count: 4,
  sum: 10,
  min: 1,
  max: 4,
  stddev: null,
  last: null,
  estimates: { p95: { value: 4, low: 3, high: 4 }, distinct: { value: 3, low: 3, high: 3 } },
};

test("what is told before and after has the names that one asks by, how many first", () => {
  const declared = ["rate", "avg", "p05", "p99.9", "top(data.path, 5)", "distinct(subject)"];
  expect(figureNames(declared)).toEqual(["count", "avg", "p5", "p99.9", "distinct"]);
  expect(figureNames(["count", "count"])).toEqual(["count"]);
});

test("a figure is exact, worked out, an estimate with its ends, or not there", () => {
  expect(figureOf(ROW, "count")).toEqual({ value: 4, low: 4, high: 4 });
  expect(figureOf(ROW, "avg")?.value).toBe(2.5);
  expect(figureOf(ROW, "p95")).toEqual({ value: 4, low: 3, high: 4 });
  expect(figureOf(ROW, "stddev")).toBeNull();
  expect(figureOf({ ...ROW, count: 0 }, "avg")).toBeNull();
  expect(figureOf(ROW, "p50")).toBeNull();
  expect(figureOf(null, "count")).toBeNull();
});
