import { expect, test } from "vitest";
import { nameOf, shareBeyond } from "../../src/pages/metric/late";

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
