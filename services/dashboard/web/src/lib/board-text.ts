/**
 * A tile more in the text of a board, with everything else as somebody wrote it. Pure.
 *
 * This knows no YAML: it proposes texts, the likeliest first, and the server's check tells
 * which of them says what was meant (`isAppended`). Only such a text may be stored.
 */
import { scalar } from "./draft";

/** A tile as a board's text has it. */
export interface NewTile {
  readonly type: "number" | "chart" | "top";
  readonly title: string;
  readonly size: "S" | "M" | "L";
  readonly metric: string;
  readonly aggregate: string;
  readonly by?: readonly string[];
  readonly window?: { readonly kind: string; readonly length: string };
}

type Parsed = Readonly<Record<string, unknown>>;

const MAX_NAME = 64;

/** Returns a tile as one line of YAML. */
export function tileLine(tile: NewTile): string {
  const { type, title, size, metric, aggregate, by = [], window } = tile;
  const parts = [
    `type: ${type}`,
    title && `title: ${scalar(title)}`,
    `size: ${size}`,
    `metric: ${scalar(metric)}`,
    `aggregate: ${scalar(aggregate)}`,
    by.length > 0 && `by: [${by.map(scalar).join(", ")}]`,
    window && `window: {kind: ${window.kind}, length: ${window.length}}`,
  ];
  return `{${parts.filter(Boolean).join(", ")}}`;
}

/** Returns the text of a new board with one tile. */
export function newBoard(name: string, title: string, tile: NewTile): string {
  const head = ["kind: board", `name: ${scalar(name)}`, `title: ${scalar(title)}`];
  return `${[...head, "tiles:", `  - ${tileLine(tile)}`].join("\n")}\n`;
}

/** Returns a name made of a title that no board has yet. */
export function boardName(title: string, taken: readonly string[]): string {
  const plain = title
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[^a-z]+/, "")
    .slice(0, MAX_NAME)
    .replace(/_+$/, "");
  const base = plain || "board";
  for (let nth = 1; ; nth += 1) {
    const end = nth === 1 ? "" : `_${nth}`;
    const name = base.slice(0, MAX_NAME - end.length) + end;
    if (!taken.includes(name)) return name;
  }
}

/** Returns texts that may be the board with the tile at its end. */
export function appendedTexts(text: string, tile: NewTile): readonly string[] {
  const json = inJson(text, tile);
  if (json !== null) return [json];
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(eol);
  const line = tileLine(tile);
  const at = lines.findIndex((one) => /^["']?tiles["']?\s*:/.test(one));
  const proposed = at < 0 ? [withTiles(lines, line)] : [...afterItems(lines, at, line)];
  return [...proposed.map((one) => one.join(eol)), ...intoList(text, line)];
}

/** Tells whether a check's answer is the board as it was, with one tile more. */
export function isAppended(before: Parsed, after: Parsed): boolean {
  const [old, now] = [tilesIn(before), tilesIn(after)];
  const rest = (parsed: Parsed) => JSON.stringify({ ...parsed, tiles: null });
  return (
    now.length === old.length + 1 &&
    JSON.stringify(now.slice(0, -1)) === JSON.stringify(old) &&
    rest(before) === rest(after)
  );
}

const tilesIn = (parsed: Parsed) => (Array.isArray(parsed.tiles) ? parsed.tiles : []);

function inJson(text: string, tile: NewTile): string | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const board = JSON.parse(text) as Parsed;
    return `${JSON.stringify({ ...board, tiles: [...tilesIn(board), tile] }, null, 2)}\n`;
  } catch {
    return null;
  }
}

function withTiles(lines: readonly string[], line: string): readonly string[] {
  const end = lines.findLastIndex((one) => one.trim() !== "") + 1;
  return [...lines.slice(0, end), "tiles:", `  - ${line}`, ...lines.slice(end)];
}

/** Yields texts with a block item after the last one; comments at the end are of the next member. */
function* afterItems(
  lines: readonly string[],
  at: number,
  line: string,
): Generator<readonly string[]> {
  const next = lines.findIndex((one, nth) => nth > at && /^(?:[^\s#\-[\]{}]|---|\.\.\.)/.test(one));
  const within = lines.slice(at, next < 0 ? lines.length : next);
  const head = (within[0] ?? "").replace(/:\s*\[\s*\]/, ":");
  const indent = /^( *)- /.exec(within.find((one) => /^ *- /.test(one)) ?? "")?.[1] ?? "  ";
  for (const counts of [/^\s*[^\s#]/, /\S/]) {
    const end = at + within.findLastIndex((one) => counts.test(one)) + 1;
    const before = [...lines.slice(0, at), head, ...lines.slice(at + 1, end)];
    yield [...before, `${indent}- ${line}`, ...lines.slice(end)];
  }
}

/** Yields texts with the tile before a closing bracket, the last bracket first. */
function* intoList(text: string, line: string): Generator<string> {
  const MOST = 3;
  let end = text.length;
  for (let nth = 0; nth < MOST; nth += 1) {
    end = text.lastIndexOf("]", end - 1);
    if (end < 0) return;
    const before = text.slice(0, end).trimEnd();
    const comma = /[[,]$/.test(before) ? " " : ", ";
    yield `${before}${comma}${line}${text.slice(before.length, end)}${text.slice(end)}`;
    if (end === 0) return;
  }
}
