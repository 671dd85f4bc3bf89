import { describe, expect, it } from "vitest";
import { cell, csv } from "../../src/lib/csv";

describe("cell", () => {
  it.each(["=1+1", "+1", "-1", "@sum", "\tx"])("makes text of the formula %j", (text) => {
    // A spreadsheet must not run what an event's author wrote.
    expect(cell(text).replace(/^"/, "")).toMatch(/^'/);
  });

  it("keeps numbers, also negative ones, and quotes what needs it", () => {
    // A number is no text: it cannot be a formula.
    expect(cell(-1.5)).toBe("-1.5");
    expect(cell(null)).toBe("");
    expect(cell(Number.NaN)).toBe("");
    expect(cell('a "b", c')).toBe('"a ""b"", c"');
  });
});

describe("csv", () => {
  it("ends each row as RFC 4180 asks", () => {
    // Every reader takes CR LF.
    expect(
      csv([
        ["a", 1],
        ["b", null],
      ]),
    ).toBe("a,1\r\nb,\r\n");
  });
});
