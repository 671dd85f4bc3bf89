import { describe, expect, it } from "vitest";
import { emptyOf, filterOf, isUnfinished } from "../../src/pages/live/filter";

describe("filterOf", () => {
  it.each([
    ["", {}],
    ["  ", {}],
    ["DE", { text: "DE" }],
    ["order.*", { type: "order.*" }],
    ["data.country = 'DE'", { where: [["data.country", "=", "DE"]] }],
    ["data.total>=10", { where: [["data.total", ">=", 10]] }],
  ])("reads %j", (text, filter) => {
    // A type, a condition, or any text.
    expect(filterOf(text)).toEqual(filter);
  });
});

describe("isUnfinished", () => {
  it.each([
    "data.status =",
    "data.status !",
    "data.total>",
    "data.total >= ",
    "data.country = '",
    "data.country = 'D",
    'data.country = "D',
  ])("knows that %j goes on", (text) => {
    // It would look for this text, and find nothing.
    expect(isUnfinished(text)).toBe(true);
  });

  it.each(["", "'", "data.status", "data.status = 200", "data.a = ''", "data.a = 'it's'", "a = "])(
    "takes %j as it is",
    (text) => {
      // What is whole, or no condition at all, is looked for.
      expect(isUnfinished(text)).toBe(false);
    },
  );
});

describe("emptyOf", () => {
  const nothing = { filter: "", held: false, newer: 0, ofPerS: 0 };

  it("leads to the first event only where nothing is filtered", () => {
    // Who filters has sent events already.
    expect(emptyOf({ ...nothing, filter: " " })).toEqual([
      "Waiting for the first event",
      "Run the command: the event appears here in under a second.",
    ]);
    expect(emptyOf({ ...nothing, filter: "x", ofPerS: 4 })).toEqual([
      'Nothing that arrived matches "x" yet.',
      "4 events a second arrive; none of them matches.",
    ]);
    expect(emptyOf({ ...nothing, filter: "x", ofPerS: 1 })[1]).toContain("1 event a second");
    expect(emptyOf({ ...nothing, filter: "x" })[1]).toBe("No event arrives now.");
  });

  it("says what a condition lacks, and that a pause holds back what matches", () => {
    // Otherwise an empty list looks like an answer.
    expect(emptyOf({ ...nothing, filter: "data.status =" })).toEqual([
      '"data.status =" is no whole condition yet',
      "A value is missing, or its quote is open: data.country = 'DE', data.total > 10",
    ]);
    expect(emptyOf({ ...nothing, filter: "x", held: true, newer: 3 })).toEqual([
      "Paused",
      "3 newer events are shown when you resume.",
    ]);
    expect(emptyOf({ ...nothing, held: true })[1]).toBe("New events are shown when you resume.");
  });
});
