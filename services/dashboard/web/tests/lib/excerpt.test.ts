import { describe, expect, it } from "vitest";
import { COLUMNS, narrowed } from "../../src/lib/excerpt";

/** Returns an excerpt with the caret below a character, as the server makes it. */
const at = (line: string, column: number) => `${line}\n${" ".repeat(column)}^`;

/** Returns what stands above the caret, and how wide the line is. */
function seen(excerpt: string): { above: string | undefined; wide: number } {
  const [line = "", below = ""] = excerpt.split("\n");
  const characters = Array.from(line);
  return { above: characters[below.length - 1], wide: characters.length };
}

describe("an excerpt", () => {
  it("is left as it is where it fits", () => {
    const excerpt = at("data.total > 10 and status = 200", 20);
    expect(narrowed(excerpt)).toBe(excerpt);
  });

  it("keeps the caret below the place, wherever that is in a long line", () => {
    const line = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(2).slice(0, 64);
    for (let column = 1; column < 63; column++) {
      const found = seen(narrowed(at(line, column)));
      expect(found).toEqual({ above: line[column], wide: COLUMNS });
    }
  });

  it("shows where the line goes on", () => {
    const line = "x".repeat(64);
    expect(narrowed(at(line, 0))).toMatch(/^x+…\n\^$/);
    expect(narrowed(at(line, 32))).toMatch(/^…x+…\n {20}\^$/);
    expect(narrowed(at(line, 63))).toMatch(/^…x+\n {39}\^$/);
  });

  it("may point behind the last character, where something is missing", () => {
    const line = `${"x".repeat(60)} and`;
    expect(narrowed(at(line, 64))).toBe(`…${"x".repeat(35)} and\n${" ".repeat(40)}^`);
  });

  it("counts characters as the server does", () => {
    const line = `${"😀".repeat(45)}status`;
    expect(seen(narrowed(at(line, 45)))).toEqual({ above: "s", wide: COLUMNS });
  });
});
