import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  appendedTexts,
  boardName,
  isAppended,
  isFull,
  isOfTile,
  MAX_TILES,
  type NewTile,
  newBoard,
  tileLine,
} from "../../src/lib/board-text";

const TILE: NewTile = {
  type: "chart",
  title: "Orders, by country",
  size: "L",
  metric: "orders",
  aggregate: "p95",
  by: ["data.country"],
  window: { kind: "sliding", length: "5m" },
};
const LINE =
  '{type: chart, title: "Orders, by country", size: L, metric: orders, aggregate: p95,' +
  " by: [data.country], window: {kind: sliding, length: 5m}}";
const HEAD = "kind: board\nname: shop\n";

describe("tileLine", () => {
  it("is one line, with whatever YAML would misread in quotes", () => {
    // A comma in a title must not begin another member.
    expect(tileLine(TILE)).toBe(LINE);
  });
});

describe("newBoard", () => {
  it("is the definition as people write it", () => {
    // The first board is read and edited by hand, too.
    expect(newBoard("shop", "The shop", TILE)).toBe(
      `${HEAD}title: "The shop"\ntiles:\n  - ${LINE}\n`,
    );
  });
});

describe("boardName", () => {
  it.each([
    ["Web server", [], "web_server"],
    ["  7 Größen: Übersicht! ", [], "gro_en_ubersicht"],
    ["東京", [], "board"],
    ["Web server", ["web_server", "web_server_2"], "web_server_3"],
    ["x".repeat(80), ["x".repeat(64)], `${"x".repeat(62)}_2`],
  ])("makes of %s beside %j the name %s", (title, taken, name) => {
    // A name is [a-z][a-z0-9_]{0,63}, and no other board's.
    expect(boardName(title, taken)).toBe(name);
    expect(name).toMatch(/^[a-z][a-z0-9_]{0,63}$/);
  });
});

describe("appendedTexts", () => {
  const first = (text: string) => appendedTexts(text, TILE)[0];

  it("adds a line after the last tile and touches no other", () => {
    // Comments, quotes and indentation stay; what stands before the next member is its own.
    const text = `# ours\n${HEAD}tiles:  # in order\n    - {type: note, text: "a # b"}\n\n# below\ntitle: Shop\n`;
    expect(first(text)).toBe(text.replace('text: "a # b"}\n', `text: "a # b"}\n    - ${LINE}\n`));
  });

  it("knows tiles that are not indented, or of several lines", () => {
    // Both are YAML.
    const text = `${HEAD}tiles:\n- type: number\n  metric: orders\n  aggregate: rate\n`;
    expect(first(text)).toBe(`${text}- ${LINE}\n`);
  });

  it("makes the list where there is none", () => {
    // Empty boards are where the first tile goes.
    const made = `${HEAD}tiles:\n  - ${LINE}\n`;
    expect(first(`${HEAD}tiles: []\n`)).toBe(made);
    expect(first(HEAD)).toBe(made);
    expect(first(HEAD.replaceAll("\n", "\r\n"))).toBe(made.replaceAll("\n", "\r\n"));
  });

  it("proposes the inside of a list in brackets, and JSON for JSON", () => {
    // The server's check says which one it is.
    const old = "{type: note, text: hi}";
    const texts = appendedTexts(`${HEAD}tiles: [${old}]\ntitle: "a]"\n`, TILE);
    expect(texts).toContain(`${HEAD}tiles: [${old}, ${LINE}]\ntitle: "a]"\n`);
    const json = JSON.stringify({ kind: "board", name: "shop", tiles: [{ type: "note" }] });
    expect(JSON.parse(first(json) ?? "").tiles).toEqual([{ type: "note" }, TILE]);
  });

  it("proposes a second place where the last line of a note looks like a comment", () => {
    // A tile put before that line would cut the note.
    const text = `${HEAD}tiles:\n  - type: note\n    text: |\n      hi\n      # there\n`;
    expect(appendedTexts(text, TILE)).toContain(`${text}  - ${LINE}\n`);
  });
});

describe("appendedTexts, of a list in brackets over lines", () => {
  const NOTE = "{type: note, text: hi}";
  const of = (inside: string) => `${HEAD}tiles: [\n${inside}\n]\n`;

  it.each([
    ["a comma at the end", `  ${NOTE},`, `  ${NOTE},\n  ${LINE}`],
    ["none", `  ${NOTE}`, `  ${NOTE},\n  ${LINE}`],
    ["a comment", `  ${NOTE}  # last`, `  ${NOTE},  # last\n  ${LINE}`],
    ["a comma and a comment", `  ${NOTE}, # x # y`, `  ${NOTE}, # x # y\n  ${LINE}`],
    ["lines of comments", `  ${NOTE}\n  # a\n# b`, `  ${NOTE},\n  # a\n# b\n  ${LINE}`],
    ["nothing but a comment", "  # none yet", `  # none yet\n  ${LINE}`],
  ])("puts the tile on a line of its own after %s", (_what, inside, wanted) => {
    // Behind a comment it would be none; the comment stays as it was.
    expect(appendedTexts(of(inside), TILE)).toContain(of(wanted));
  });

  it("proposes both where a text has the sign of a comment", () => {
    // Only the server's check can tell a comment from a text.
    const text = '  {type: note, text: "a # b"}';
    expect(appendedTexts(of(text), TILE)).toContain(of(`${text},\n  ${LINE}`));
    expect(appendedTexts(of(`${text} # c`), TILE)).toContain(of(`${text} # c\n  , ${LINE}`));
  });
});

describe("appendedTexts, of blocks that end in another way", () => {
  it("proposes the place after a text that keeps its blank lines", () => {
    // A tile before them would take them from the note.
    const text = `${HEAD}tiles:\n  - type: note\n    text: |+\n      hi\n\n`;
    expect(appendedTexts(text, TILE)).toContain(`${text}  - ${LINE}\n`);
  });

  it("knows a board that is indented as a whole", () => {
    // Texts pasted from another document are.
    const text = "  kind: board\n  name: shop\n  tiles:\n    - {type: note, text: a}\n";
    expect(appendedTexts(text, TILE)[0]).toBe(`${text}    - ${LINE}\n`);
    const none = "  kind: board\n  name: shop\n";
    expect(appendedTexts(none, TILE)[0]).toBe(`${none}  tiles:\n    - ${LINE}\n`);
  });

  it("proposes the end where a text over lines begins at the margin", () => {
    // Such a line is no member of the board, whatever it looks like.
    const text = `${HEAD}tiles:\n  - {type: note, text: "a\nthere: b"}\n`;
    expect(appendedTexts(text, TILE)).toContain(`${text}  - ${LINE}\n`);
  });
});

describe("isFull", () => {
  it("knows how many tiles the server takes", () => {
    // Its check would speak of a list's length, not of another board.
    const path = "../../../../../libs/weir/weir/definitions/board.py";
    const source = readFileSync(new URL(path, import.meta.url), "utf8");
    expect(source).toContain(`MAX_TILES: Final = ${MAX_TILES}\n`);
    const tiles = Array.from({ length: MAX_TILES }, () => ({}));
    expect(isFull({ tiles })).toBe(true);
    expect(isFull({ tiles: tiles.slice(1) })).toBe(false);
  });
});

describe("isOfTile", () => {
  it("tells a fault of the new tile from those of a text that nobody wrote", () => {
    // Only the first is worth reading.
    const board = { tiles: [{}, {}] };
    expect(isOfTile([{ pointer: "/tiles/2/title" }, { pointer: "/tiles/2" }], board)).toBe(true);
    expect(isOfTile([{ pointer: "/tiles/1/title" }], board)).toBe(false);
    expect(isOfTile([{ pointer: "/tiles/20" }], board)).toBe(false);
    expect(isOfTile([{ pointer: "" }], board)).toBe(false);
    expect(isOfTile([], board)).toBe(false);
  });
});

describe("isAppended", () => {
  const board = (tiles: unknown[], title = "") => ({ kind: "board", name: "shop", title, tiles });

  it("takes the board as it was with one tile more, and nothing else", () => {
    // What somebody wrote must never be lost by a guess about its text.
    const [a, b] = [{ text: "a" }, { text: "b" }];
    expect(isAppended(board([a]), board([a, b]))).toBe(true);
    expect(isAppended(board([a]), board([a]))).toBe(false);
    expect(isAppended(board([a]), board([b, a]))).toBe(false);
    expect(isAppended(board([a]), board([a, b], "other"))).toBe(false);
  });
});
