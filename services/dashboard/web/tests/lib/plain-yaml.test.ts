import { describe, expect, it } from "vitest";
import { type Plain, readMembers, withMember } from "../../src/lib/plain-yaml";

const HOW = { order: ["a", "b", "c"], numbers: ["b"] };
const read = (text: string, ...names: string[]) => readMembers(text, names);
const one = (value: string): Plain | undefined => read(`a: ${value}\n`, "a")?.get("a");

describe("readMembers", () => {
  it.each([
    ["5m", "5m"],
    ["5m   # or 10m", "5m"],
    ["'it''s'", "it's"],
    ['"a \\"b\\" # c"', 'a "b" # c'],
    ["~", ""],
    ["", ""],
    ["route like '/pay%'", "route like '/pay%'"],
    ["http://x/y#z", "http://x/y#z"],
    ["[a, 'b, c', \"d\"]", ["a", "b, c", "d"]],
    ["[]", []],
    ["[a, b,]", ["a", "b"]],
    ["[\n  a,  # first\n  b\n  ]", ["a", "b"]],
    ["\n  - a\n  - b", ["a", "b"]],
  ])("reads %j", (text, value) => {
    // The part of YAML that is written by hand.
    expect(one(text)).toEqual(value);
  });

  it("reads maps on a line and over lines", () => {
    // Both are in use.
    const map = new Map<string, Plain>([
      ["length", "5m"],
      ["more", ["x"]],
    ]);
    expect(one("{length: 5m, more: [x]}")).toEqual(map);
    expect(one("\n  length: 5m # five\n  more:\n    - x")).toEqual(map);
  });

  it.each([
    "&x 5m",
    "*x",
    "!!str 5",
    "|\n  text",
    "[a",
    "{a: b",
    "a: b",
    "'open",
    "5m\n  more",
    "\n\t- a",
  ])("does not guess at %j", (text) => {
    // What is read wrongly would be stored wrongly.
    expect(read(`a: ${text}\n`, "a")).toBeNull();
  });

  it.each(["---\na: 1", "a: 1\na: 2", "  a: 1", "- a", "{a: 1}", "[1]x"])(
    "does not read the text %j",
    (text) => {
      // Twice, indented, several documents: the text view is there for them.
      expect(read(text, "a")).toBeNull();
    },
  );

  it("looks at nothing that it is not asked for", () => {
    // A message may be a text over lines.
    expect(read("a: 1\nmessage: |\n  a: 2\n\n  # no comment\nb: 3\n", "a", "b")).toEqual(
      new Map([
        ["a", "1"],
        ["b", "3"],
      ]),
    );
  });

  it("reads JSON", () => {
    // It is YAML, too.
    expect(read('{"a": 1.5, "b": [true], "c": {"d": null}}', "a", "b", "c")).toEqual(
      new Map<string, Plain>([
        ["a", "1.5"],
        ["b", ["true"]],
        ["c", new Map([["d", ""]])],
      ]),
    );
  });
});

describe("withMember", () => {
  it("changes one line and keeps its comment", () => {
    // All else is as somebody wrote it.
    expect(withMember("# top\na: 1   # one\n\nc: 'x'\n", "a", "5m", HOW)).toBe(
      "# top\na: 5m   # one\n\nc: 'x'\n",
    );
  });

  it("puts a new member in its place", () => {
    // Behind what comes before it.
    expect(withMember("a: 1\n# of c\nc: 2\n", "b", "4", HOW)).toBe("a: 1\nb: 4\n# of c\nc: 2\n");
  });

  it("replaces and removes a member over lines", () => {
    // With all its lines, and no more.
    const text = "a:\n  - x\n  - y\n\n# of c\nc: 2\n";
    expect(withMember(text, "a", ["z"], HOW)).toBe("a: [z]\n\n# of c\nc: 2\n");
    expect(withMember(text, "a", null, HOW)).toBe("\n# of c\nc: 2\n");
  });

  it.each([
    ["no", '"no"'],
    ["400", '"400"'],
    ["2m30s", "2m30s"],
    ["a: b", '"a: b"'],
    ["", '""'],
  ])("writes the text %j so that it is read as one", (value, written) => {
    // YAML reads much as something else.
    expect(withMember("a: 1\n", "a", value, HOW)).toBe(`a: ${written}\n`);
    expect(read(withMember("a: 1\n", "a", value, HOW), "a")?.get("a")).toBe(value);
  });

  it("writes numbers as numbers, and what is none as a text", () => {
    // The check tells that it is none.
    expect(withMember("b: 1\n", "b", "-1.5e3", HOW)).toBe("b: -1.5e3\n");
    expect(withMember("b: 1\n", "b", "4x", HOW)).toBe('b: "4x"\n');
    expect(JSON.parse(withMember('{"b": 1, "z": 2}', "b", "2.5", HOW))).toEqual({ b: 2.5, z: 2 });
    expect(JSON.parse(withMember('{"b": 1, "z": 2}', "b", null, HOW))).toEqual({ z: 2 });
  });

  it("keeps the ends of lines", () => {
    // As the file has them.
    expect(withMember("a: 1\r\nc: 2\r\n", "b", "3", HOW)).toBe("a: 1\r\nb: 3\r\nc: 2\r\n");
  });
});
