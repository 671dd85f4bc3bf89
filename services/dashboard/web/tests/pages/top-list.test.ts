import { describe, expect, it } from "vitest";
import { modelOf } from "../../src/live/model";
import type { WireAnswer } from "../../src/live/wire";
import { topListsOf } from "../../src/pages/metric/top-list";

const ANSWER: WireAnswer = {
  metric: { name: "visits", version: 1, unit: "", resolution_ms: 10_000, lateness_ms: 0 },
  epoch: 1,
  rev: 1,
  final_to_ms: null,
  t_ms: [10_000, 20_000, 30_000],
  of: 2,
  series: [
    {
      k: 7,
      by: { country: "de" },
      slot: 0,
      count: [3, 21, null],
      items: [
        [["/old", 3, 3, 3]],
        [
          ["/pay", 9, 9, 9],
          ["", 3, 2, 4],
          [null, null, 0, 2],
        ],
        null,
      ],
      state: "ffp",
    },
    {
      k: 1,
      by: {},
      slot: 1,
      other: true,
      count: [1, 5, null],
      items: [[], null, null],
      state: "ffp",
    },
  ],
};

describe("topListsOf", () => {
  const [named, rest] = topListsOf(modelOf(ANSWER), "top(data.page, 2)");

  it("shows the newest window that is known, with the ends of each count", () => {
    // An exact count says so; what is not listed has only its most.
    expect(named?.name).toBe("de");
    expect(named?.events).toBe(21);
    expect(named?.rows?.map(({ text, count, within }) => [text, count, within])).toEqual([
      ["/pay", "9", "exact"],
      ["(empty text)", "3", "2 – 4"],
      ["any other", "–", "at most 2"],
    ]);
    expect(named?.rows?.map(({ share }) => share)).toEqual([1, 1 / 3, 0]);
  });

  it("tells what nobody knows from what is empty", () => {
    // Of a capped metric some texts are not known; that is no empty list.
    expect(rest?.rows).toBeNull();
  });
});
