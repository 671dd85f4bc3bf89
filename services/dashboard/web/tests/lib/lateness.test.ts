import { expect, test } from "vitest";
import { fewerHours, hoursOf, lengthsSeen, shareBeyond } from "../../src/lib/lateness";

const LATE = [
  { than_ms: 0, events: 90, share: 0.9 },
  { than_ms: 60_000, events: 10, share: 0.1 },
  { than_ms: 600_000, events: 1, share: 0.01 },
];
const NONE = { than_ms: 3_600_000, events: 0, share: 0 };

test("a share is that of the longest length told that is not above what is allowed", () => {
  expect(shareBeyond({ events: 100, late: LATE }, 60_000)?.share).toBe(0.1);
  expect(shareBeyond({ events: 100, late: LATE }, 599_999)?.share).toBe(0.1);
  expect(shareBeyond({ events: 100, late: LATE }, 600_000)?.share).toBe(0.01);
});

test("without events nothing is said", () => {
  expect(shareBeyond({ events: 0, late: LATE }, 60_000)).toBeNull();
});

test("lengths are shown up to the first that nothing came later than", () => {
  expect(lengthsSeen({ late: [...LATE, NONE, { ...NONE, than_ms: 7_200_000 }] })).toEqual([
    0, 60_000, 600_000, 3_600_000,
  ]);
  expect(lengthsSeen({ late: LATE })).toEqual([0, 60_000, 600_000]);
});

test("where so many hours are too much, fewer are asked for, and at last none", () => {
  const tooMuch = { code: "query_too_large" };
  expect([24, 6, 1].map((hours) => fewerHours(hours, tooMuch))).toEqual([6, 1, null]);
  expect(fewerHours(24, { code: "query_timeout" })).toBe(6);
  expect(fewerHours(24, { code: "rate_limited" })).toBeNull();
  expect(fewerHours(24, { code: "definition_invalid" })).toBeNull();
});

test("of how many hours it is told holds on an hour's edge, too", () => {
  const [from_ms, hour] = [1_795_176_000_000, 3_600_000];
  expect(hoursOf({ from_ms, to_ms: from_ms + 23 * hour })).toBe(24);
  expect(hoursOf({ from_ms, to_ms: from_ms + 24 * hour - 1 })).toBe(24);
  expect(hoursOf({ from_ms, to_ms: from_ms })).toBe(1);
});
