import { describe, expect, it } from "vitest";
import {
  movedBy,
  numberOf,
  rounded,
  sensibleLimit,
  stepOf,
  valueAt,
  yOf,
} from "../../src/lib/limit";

const frame = { left: 48, top: 18, width: 600, height: 200, low: 0, high: 800 };

describe("a limit on a chart", () => {
  it("stands where its value is, and within the chart", () => {
    // Both ends, and beyond them.
    expect(yOf(frame, 400)).toBe(118);
    expect(yOf(frame, 800)).toBe(18);
    expect(yOf(frame, 2_000)).toBe(18);
    expect(yOf(frame, -1)).toBe(218);
  });

  it("is dragged to round values", () => {
    // One way and back.
    expect(stepOf(frame)).toBe(10);
    expect(valueAt(frame, 118)).toBe(400);
    expect(valueAt(frame, 117)).toBe(400);
    expect(valueAt(frame, 115)).toBe(410);
    expect(valueAt(frame, -50)).toBe(800);
    expect(valueAt(frame, 999)).toBe(0);
  });

  it("moves by keys", () => {
    // A step, ten steps, the ends; beyond the chart it may go.
    expect(movedBy("ArrowUp", 400, frame)).toBe(410);
    expect(movedBy("ArrowDown", 400, frame)).toBe(390);
    expect(movedBy("PageUp", 800, frame)).toBe(900);
    expect(movedBy("End", 400, frame)).toBe(800);
    expect(movedBy("Enter", 400, frame)).toBeNull();
  });

  it("has no dust of binary fractions", () => {
    // 0.1 + 0.2 is to be 0.3, and nothing is minus zero.
    expect(rounded(0.1 + 0.2, 0.1)).toBe(0.3);
    expect(Object.is(rounded(-0.01, 0.1), 0)).toBe(true);
  });
});

describe("sensibleLimit", () => {
  it.each([
    [[1, 401], 450],
    [[0.0123], 0.014],
    [[-100, -50], -45],
    [[0, 0], 1],
    [[100], 110],
  ])("lies a little above %j", (values, limit) => {
    // Two digits: people round.
    expect(sensibleLimit([Float64Array.from([Number.NaN, ...values])])).toBe(limit);
  });

  it("is not beyond what no value can exceed", () => {
    // A share has its own top.
    expect(sensibleLimit([Float64Array.from([97])], 100)).toBe(100);
  });

  it("is none without values", () => {
    // Nothing is made up.
    expect(sensibleLimit([Float64Array.from([Number.NaN])])).toBeNull();
  });
});

describe("numberOf", () => {
  it.each([
    ["400", 400],
    [" 4.5 ", 4.5],
    ["", null],
    ["4x", null],
    ["1e999", null],
  ])("reads %j", (text, value) => {
    // What is typed need not be a number yet.
    expect(numberOf(text)).toBe(value);
  });
});
