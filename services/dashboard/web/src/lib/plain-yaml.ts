/**
 * The members of a definition's text, read and changed one by one. Pure.
 *
 * It knows the part of YAML that definitions are written in by hand: plain and quoted
 * scalars, lists and maps in lines or in brackets. What goes beyond is not guessed at: a
 * text, or a value, that it cannot read whole is null. A change touches its member's lines
 * alone; all others, and comments, stay as somebody wrote them.
 */
import { Unreadable, valueIn } from "./plain-value";

/** A value as written: scalars are texts, and nothing at all is an empty one. */
export type Plain = string | readonly Plain[] | ReadonlyMap<string, Plain>;

interface Member {
  readonly name: string;
  /** Its first line, and the one after its last. */
  readonly from: number;
  readonly to: number;
}

const HEAD = /^(?:"(\w+)"|'(\w+)'|([A-Za-z_]\w*))\s*:(?=\s|$)/;
const NOTHING = /^\s*(#|$)/;
const BELOW = /^(\s|- |-$)/;

const isJson = (text: string) => text.trimStart().startsWith("{");
const linesOf = (text: string) => text.split(/\r?\n/);

/** Returns the values of the members that are asked for; null if the text is not plain. */
export function readMembers(
  text: string,
  names: readonly string[],
): ReadonlyMap<string, Plain> | null {
  try {
    return isJson(text) ? inJson(text, names) : inLines(text, names);
  } catch (error) {
    if (error instanceof Unreadable || error instanceof SyntaxError) return null;
    throw error;
  }
}

function inJson(text: string, names: readonly string[]): ReadonlyMap<string, Plain> {
  const object = JSON.parse(text) as Record<string, unknown>;
  const found = Object.entries(object).filter(([name]) => names.includes(name));
  return new Map(found.map(([name, value]) => [name, plainOf(value)]));
}

function plainOf(value: unknown): Plain {
  if (value === null) return "";
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== "object") return String(value);
  return new Map(Object.entries(value).map(([name, one]) => [name, plainOf(one)]));
}

function inLines(text: string, names: readonly string[]): ReadonlyMap<string, Plain> {
  const lines = linesOf(text);
  const wanted = membersOf(lines).filter(({ name }) => names.includes(name));
  return new Map(
    wanted.map(({ name, from, to }) => {
      const [head = "", ...below] = lines.slice(from, to);
      return [name, valueIn(head.replace(HEAD, ""), below)];
    }),
  );
}

/** Returns the members of a text at its top; throws on what is no such text. */
function membersOf(lines: readonly string[]): readonly Member[] {
  const members: { name: string; from: number; to: number }[] = [];
  for (const [at, line] of lines.entries()) {
    if (NOTHING.test(line)) continue;
    const head = HEAD.exec(line);
    const last = members.at(-1);
    if (head) members.push({ name: head[1] ?? head[2] ?? head[3] ?? "", from: at, to: at + 1 });
    else if (last && BELOW.test(line)) last.to = at + 1;
    else throw new Unreadable();
  }
  if (new Set(members.map(({ name }) => name)).size < members.length) throw new Unreadable();
  return members;
}

/**
 * Returns the text with a member set, or without it where `value` is null.
 *
 * A new one stands behind the last of those that come before it in `order`. `numbers` are
 * the members whose scalars are numbers. The text must be one that `readMembers` reads.
 */
export function withMember(text: string, name: string, value: Plain | null, how: Spelling): string {
  if (isJson(text)) return jsonWith(text, name, value, how);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = linesOf(text);
  const members = membersOf(lines);
  const known = members.find((one) => one.name === name);
  const from = known?.from ?? placeOf(members, name, how.order);
  const to = known?.to ?? from;
  const remark = known && to - from === 1 ? remarkOf(lines[from] ?? "") : "";
  const line = value === null ? [] : [`${name}: ${spelled(value, isNumber(name, how))}${remark}`];
  return [...lines.slice(0, from), ...line, ...lines.slice(to)].join(eol);
}

/** How members are written. */
export interface Spelling {
  readonly order: readonly string[];
  readonly numbers: readonly string[];
}

const isNumber = (name: string, { numbers }: Spelling) => numbers.includes(name);

function placeOf(members: readonly Member[], name: string, order: readonly string[]): number {
  const rank = order.indexOf(name);
  const before = members.filter((one) => {
    const other = order.indexOf(one.name);
    return other >= 0 && other < rank;
  });
  return Math.max(0, ...before.map((one) => one.to));
}

/** Returns the comment at the end of a line, with the space before it. */
function remarkOf(line: string): string {
  const quoted = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/g;
  const bare = line.replace(quoted, (text) => "x".repeat(text.length));
  const at = /\s+#/.exec(bare)?.index;
  return at === undefined ? "" : line.slice(at);
}

function jsonWith(text: string, name: string, value: Plain | null, how: Spelling): string {
  const { [name]: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
  if (value === null) return `${JSON.stringify(rest, null, 2)}\n`;
  const json = jsonOf(value, isNumber(name, how));
  const old = JSON.parse(text) as Record<string, unknown>;
  return `${JSON.stringify({ ...old, [name]: json }, null, 2)}\n`;
}

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

function jsonOf(value: Plain, number: boolean): unknown {
  if (typeof value === "string") return number && NUMBER.test(value) ? Number(value) : value;
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, one]) => [key, jsonOf(one, number)]));
  return (value as readonly Plain[]).map((one) => jsonOf(one, number));
}

const LENGTH = /^(\d+(ms|[smhdw]))+$/;
const WORD = /^[A-Za-z_][\w./()-]*$/;
const OTHER = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** Returns a value on one line, quoted wherever it could be read as something else. */
function spelled(value: Plain, number: boolean): string {
  if (typeof value === "string") {
    if (number && NUMBER.test(value)) return value;
    const plain = LENGTH.test(value) || (WORD.test(value) && !OTHER.test(value));
    return plain ? value : JSON.stringify(value);
  }
  if (value instanceof Map)
    return `{${[...value].map(([key, one]) => `${key}: ${spelled(one, number)}`).join(", ")}}`;
  return `[${(value as readonly Plain[]).map((one) => spelled(one, number)).join(", ")}]`;
}
