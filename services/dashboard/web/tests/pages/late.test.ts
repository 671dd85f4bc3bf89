import { expect, test } from "vitest";
import {
  figureNames,
  figureOf,
  hasTexts,
  nameOf,
  sourcesOf,
  textsOf,
} from "../../src/pages/metric/late";

test("a series is called by the values of its dimensions", () => {
  expect(nameOf({ by: { region: "eu", route: null }, other: false })).toBe("eu · null");
  expect(nameOf({ by: {}, other: false })).toBe("all");
  expect(nameOf({ by: {}, other: true })).toBe("other");
});

test("sources are possible ones unless they are told exactly, or none is missing of one", () => {
  const [web, app] = [
    { source: "web", events: 1 },
    { source: "app", events: 2 },
  ];
  const told = { sources: [web, app], sources_exact: false, sources_known: true };
  expect(sourcesOf(told)).toBe("possibly web, app");
  expect(sourcesOf({ ...told, sources_exact: true })).toBe("web, app");
  expect(sourcesOf({ ...told, sources: [web] })).toBe("web");
  expect(sourcesOf({ ...told, sources: [web], sources_known: false })).toBe("possibly web");
  expect(sourcesOf({ ...told, sources: [] })).toBe("not known");
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
  expect(hasTexts(declared)).toBe(true);
  expect(hasTexts(["count", "distinct(data.top)"])).toBe(false);
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

test("texts are told as they came, the empty one by a word, and of a release before none", () => {
  const ends = { value: 1, low: 1, high: 2 };
  const texts = ["/a", ""].map((text) => ({ text, was: ends, now: ends }));
  expect(textsOf({ texts }).map(({ text }) => text)).toEqual(["/a", "(empty text)"]);
  expect(textsOf({})).toEqual([]);
});
