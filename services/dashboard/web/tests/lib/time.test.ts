import { describe, expect, it } from "vitest";
import {
  clock,
  lengthOf,
  lengthText,
  lengthWords,
  span,
  tickStep,
  ticks,
} from "../../src/lib/time";

const AT = Date.UTC(2026, 10, 20, 13, 32, 6, 120);

describe("clock", () => {
  it("tells 24 hours in the zone that was chosen", () => {
    // UTC reads the same on every machine.
    expect(clock(AT, "utc")).toBe("13:32");
    expect(clock(AT, "utc", "second")).toBe("13:32:06");
    expect(clock(AT, "utc", "tenth")).toBe("13:32:06.12");
  });
});

describe("span", () => {
  it.each([
    [400, "0.4 s"],
    [9_949, "9.9 s"],
    [9_950, "10 s"],
    [44_000, "44 s"],
    [180_000, "3 min"],
    [7_500_000, "2 h 5 min"],
    [7_200_000, "2 h"],
    [259_200_000, "3 d"],
    [-5, "0.0 s"],
  ])("tells %d ms as %s", (ms, text) => {
    // A clock that runs ahead is not a negative age.
    expect(span(ms)).toBe(text);
  });
});

describe("lengthOf", () => {
  it("reads lengths as definitions write them, and nothing else", () => {
    // A wrong length is named, never guessed.
    expect(lengthOf("15m")).toBe(900_000);
    expect(lengthOf("2m30s")).toBe(150_000);
    expect(lengthOf("250ms")).toBe(250);
    for (const text of ["", "m", "15", "1.5h", "-1m", "0s", "1h x"])
      expect(lengthOf(text)).toBeNull();
  });

  it("is undone by lengthText", () => {
    // The address and the query say the same length.
    for (const text of ["1w", "36h", "90s", "5m", "250ms"]) {
      expect(lengthText(lengthOf(text) ?? 0)).toBe(text);
    }
    expect(lengthWords(300_000)).toBe("5 m");
  });
});

describe("ticks", () => {
  it("fall on round clock times within the span", () => {
    // 13:40, 13:50, …: what people read clocks by.
    const from = Date.UTC(2026, 10, 20, 12, 32);
    const found = ticks(from, from + 3_600_000, 600_000, "utc").map((t) => clock(t, "utc"));
    expect(found).toEqual(["12:40", "12:50", "13:00", "13:10", "13:20", "13:30"]);
  });

  it("are not more than fit", () => {
    // Labels that overlap cannot be read.
    for (const most of [2, 5, 9])
      expect(3_600_000 / tickStep(3_600_000, most)).toBeLessThanOrEqual(most);
  });
});
