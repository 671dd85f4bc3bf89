/** The promises of the palette, on the tokens as they are shipped. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

type Rgb = readonly [number, number, number];
type Theme = "light" | "dark";

const TOKENS = new Map<string, Record<Theme, string>>();
const text = readFileSync(new URL("../src/styles/tokens.css", import.meta.url), "utf8");
for (const [, name = "", light = "", dark = ""] of text.matchAll(
  /--([\w-]+):\s*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g,
)) {
  TOKENS.set(name, { light, dark });
}

function linear(name: string, theme: Theme): Rgb {
  const color = TOKENS.get(name)?.[theme] ?? "";
  return [1, 3, 5].map((at) => {
    const c = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
}

/** Contrast of WCAG 2. */
function contrast(one: string, other: string, theme: Theme): number {
  const light = (name: string) => {
    const [r, g, b] = linear(name, theme);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a = 0, b = 0] = [light(one), light(other)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}

const WORDS = ["text", "text-2", "text-3", "accent", "bad", "warn", "good", "fix", "none"];
const GROUNDS = ["bg", "surface", "raised", "hover"];
const SOFT = [
  ["bad", "bad-soft"],
  ["warn", "warn-soft"],
  ["good", "good-soft"],
  ["fix", "fix-soft"],
  ["accent", "accent-soft"],
  ["text-2", "fill"],
  ["text-3", "sunken"],
  ["text-2", "accent-soft"],
  ["on-accent", "accent-fill"],
] as const;
const LINES = [
  "s1",
  "s2",
  "s3",
  "s4",
  "s5",
  "s6",
  "s7",
  "s8",
  "accent",
  "bad",
  "warn",
  "fix",
  "control",
];

describe.each(["light", "dark"] as const)("%s theme", (theme) => {
  it.each(WORDS)("%s can be read on every ground", (name) => {
    // WCAG AA: 4.5 to 1.
    for (const ground of GROUNDS) {
      expect(contrast(name, ground, theme), `on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  it.each(SOFT)("%s can be read on %s", (name, ground) => {
    // Also where a state colors the ground.
    expect(contrast(name, ground, theme)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(LINES)("a line of %s can be seen", (name) => {
    // WCAG AA for graphics: 3 to 1.
    for (const ground of ["bg", "surface", "raised"]) {
      expect(contrast(name, ground, theme), `on ${ground}`).toBeGreaterThanOrEqual(3);
    }
  });
});
