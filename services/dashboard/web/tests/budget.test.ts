/** What a page costs to load, measured on the built files. Skipped before the first build. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

interface Chunk {
  readonly file: string;
  readonly name?: string;
  readonly isEntry?: boolean;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
}

const DIST = new URL("../dist/", import.meta.url);
const MANIFEST = new URL(".vite/manifest.json", DIST);
const KB = 1_024;

const chunks: Record<string, Chunk> = existsSync(MANIFEST)
  ? JSON.parse(readFileSync(MANIFEST, "utf8"))
  : {};
const zipped = (file: string) => gzipSync(readFileSync(new URL(file, DIST)), { level: 9 }).length;

/** Returns the files that a chunk needs before it runs. */
function needed(key: string, seen = new Set<string>()): Set<string> {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const other of chunks[key]?.imports ?? []) needed(other, seen);
  return seen;
}

const sum = (keys: Iterable<string>) =>
  [...keys].reduce((all, key) => all + zipped(chunks[key]?.file ?? ""), 0);

describe.skipIf(!existsSync(MANIFEST))("budgets", () => {
  const entry = Object.keys(chunks).find((key) => chunks[key]?.isEntry) ?? "";
  const pages = chunks[entry]?.dynamicImports ?? [];
  const initial = needed(entry);

  it("the first script, with all that any page with charts shares, is at most 60 KB", () => {
    // Charts come with the first page that has one, which is nearly always the first page.
    const shared = Object.keys(chunks).filter((key) => (chunks[key]?.name ?? "").includes("chart"));
    expect(shared).not.toHaveLength(0);
    expect(sum(new Set([...initial, ...shared]))).toBeLessThanOrEqual(60 * KB);
  });

  it("the styles are at most 10 KB", () => {
    // Written by hand, so it stays so.
    const styles = readdirSync(new URL("assets/", DIST)).filter((name) => name.endsWith(".css"));
    expect(styles).toHaveLength(1);
    expect(zipped(`assets/${styles[0]}`)).toBeLessThanOrEqual(10 * KB);
  });

  it.each(pages)("%s adds at most 20 KB", (page) => {
    // What only this page needs.
    const own = [...needed(page)].filter(
      (key) => !initial.has(key) && !(chunks[key]?.name ?? "").includes("chart"),
    );
    expect(sum(own)).toBeLessThanOrEqual(20 * KB);
  });

  it("nothing is inlined that the content security policy would refuse", () => {
    // No inline script, no inline style, no foreign address.
    const html = readFileSync(new URL("index.html", DIST), "utf8");
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=/);
    expect(html).not.toMatch(/https?:\/\//);
  });
});
