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
  const eol = /\r\n/.test(text) && !/[^\r]\n/.test(text) ? "\r\n" : "\n";
  const lines = text.split(eol);
  const line = tileLine(tile);
  const base = baseOf(lines);
  const at = lines.findIndex((one) => TILES.test(one) && indentOf(one) === base);
  const proposed = at < 0 ? [withTiles(lines, base, line)] : [...afterItems(lines, at, line)];
  return [...new Set([...proposed.map((one) => one.join(eol)), ...intoList(text, line, eol)])];
}

/** The most tiles that the server takes on a board. */
export const MAX_TILES = 60;

/** Tells whether a board takes no more tiles. */
export const isFull = (parsed: Parsed): boolean => tilesIn(parsed).length >= MAX_TILES;

/** Tells whether a check refused nothing but the tile that would be the board's next. */
export function isOfTile(errors: readonly { pointer: string }[], board: Parsed): boolean {
  const place = `/tiles/${tilesIn(board).length}/`;
  return errors.length > 0 && errors.every((error) => `${error.pointer}/`.startsWith(place));
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

const TILES = /^ *["']?tiles["']?\s*:/;
const MEMBER = /^ *["']?[A-Za-z_]\w*["']?\s*:/;
const DIVIDER = /^(?:---|\.\.\.)/;

const indentOf = (line: string): string => /^ */.exec(line)?.[0] ?? "";

/** Returns the indentation of a board's own members; a whole text may be indented. */
const baseOf = (lines: readonly string[]): string =>
  indentOf(lines.find((one) => /^\s*[^\s#%]/.test(one) && !DIVIDER.test(one)) ?? "");

function withTiles(lines: readonly string[], base: string, line: string): readonly string[] {
  const end = lines.findLastIndex((one) => one.trim() !== "") + 1;
  return [...lines.slice(0, end), `${base}tiles:`, `${base}  - ${line}`, ...lines.slice(end)];
}

/** Yields texts with a block item after the last one, for each end that the list may have. */
function* afterItems(
  lines: readonly string[],
  at: number,
  line: string,
): Generator<readonly string[]> {
  const head = lines[at] ?? "";
  const base = indentOf(head);
  const opened = head.replace(/:\s*\[\s*\]/, ":");
  for (const end of endsOf(lines, at)) {
    const first = lines.slice(at, end).find((one) => /^ *- /.test(one));
    const indent = first === undefined ? `${base}  ` : indentOf(first);
    const before = [...lines.slice(0, at), opened, ...lines.slice(at + 1, end)];
    yield [...before, `${indent}- ${line}`, ...lines.slice(end)];
  }
}

/** Returns where the list may end; what looks like the next member can be of a text over lines. */
function endsOf(lines: readonly string[], at: number): readonly number[] {
  const MOST = 3;
  const base = indentOf(lines[at] ?? "");
  const stops = [...lines.keys()].filter((nth) => {
    const one = lines[nth] ?? "";
    return nth > at && (DIVIDER.test(one) || (MEMBER.test(one) && indentOf(one) === base));
  });
  const last = lines.length - (lines.at(-1) === "" ? 1 : 0);
  return [...stops.slice(0, MOST), last].flatMap((stop) => {
    const within = lines.slice(at, stop);
    // Comments at the end are of the next member; blank lines at the end may be of a text.
    const after = (counts: RegExp) => at + within.findLastIndex((one) => counts.test(one)) + 1;
    return [after(/^\s*[^\s#]/), after(/\S/), stop];
  });
}

/** Yields texts with the tile before a closing bracket, the last bracket first. */
function* intoList(text: string, line: string, eol: string): Generator<string> {
  const MOST = 3;
  let end = text.length;
  for (let nth = 0; nth < MOST && end > 0; nth += 1) {
    end = text.lastIndexOf("]", end - 1);
    if (end < 0) return;
    yield* beforeBracket(text, end, line, eol);
  }
}

/** Yields texts with the tile before one bracket; it never stands behind a comment. */
function* beforeBracket(text: string, end: number, line: string, eol: string): Generator<string> {
  const before = text.slice(0, end).trimEnd();
  const gap = text.slice(before.length, end);
  const rest = gap + text.slice(end);
  if (!gap.includes("\n")) {
    yield `${before}${/[[,]$/.test(before) ? "" : ","} ${line}${rest}`;
    return;
  }
  const code = codeOf(before);
  const own = `${eol}${indentOf(code.split(eol).at(-1) ?? "") || "  "}`;
  const comma = /[[,]$/.test(code) ? "" : ",";
  yield `${code}${comma}${before.slice(code.length)}${own}${line}${rest}`;
  // What looks like a comment can be a sign in a text.
  yield `${before}${own}${line}${rest}`;
  yield `${before},${own}${line}${rest}`;
  yield `${before}${own}, ${line}${rest}`;
}

/** Returns a text without the comments at its end. */
function codeOf(text: string): string {
  const code = text.replace(/(^|\s)#[^\n]*$/, "").trimEnd();
  return code === text ? code : codeOf(code);
}
