/** Reading one value of plain YAML: see `plain-yaml.ts`. Pure. */
import type { Plain } from "./plain-yaml";

/** The text goes beyond what is read here. */
export class Unreadable extends Error {}

const NOTHING = /^\s*(#|$)/;
const KEY = /^(?:"([^"\\]+)"|'([^']+)'|([A-Za-z_][\w.-]*))\s*:(?=\s|$)/;

/** Returns the value that begins behind a key and goes on in the lines below it. */
export function valueIn(rest: string, below: readonly string[]): Plain {
  if (!NOTHING.test(rest)) return inlineOf([rest, ...below].join("\n"));
  const lines = below.filter((line) => !NOTHING.test(line));
  if (lines.length === 0) return "";
  const indent = Math.min(...lines.map((line) => line.search(/\S/)));
  if (lines.some((line) => line.slice(0, indent).includes("\t"))) throw new Unreadable();
  return blockOf(lines.map((line) => line.slice(indent)));
}

/** A list or a map, an entry a line, with what belongs to it below. */
function blockOf(lines: readonly string[]): Plain {
  const isList = /^-(\s|$)/.test(lines[0] ?? "");
  const entries: { head: string; below: string[] }[] = [];
  for (const line of lines) {
    if (!line.startsWith(" ")) entries.push({ head: line, below: [] });
    else if (entries.length > 0) entries.at(-1)?.below.push(line);
    else throw new Unreadable();
  }
  return isList ? listOf(entries) : mapOf(entries);
}

type Entries = readonly { readonly head: string; readonly below: readonly string[] }[];

function listOf(entries: Entries): Plain {
  return entries.map(({ head, below }) => {
    if (!/^-(\s|$)/.test(head)) throw new Unreadable();
    return valueIn(head.slice(1), below);
  });
}

function mapOf(entries: Entries): Plain {
  const found = new Map<string, Plain>();
  for (const { head, below } of entries) {
    const key = KEY.exec(head);
    const name = key?.[1] ?? key?.[2] ?? key?.[3];
    if (!key || name === undefined || found.has(name)) throw new Unreadable();
    found.set(name, valueIn(head.slice(key[0].length), below));
  }
  return found;
}

/** Returns a value that begins on its key's line. */
function inlineOf(text: string): Plain {
  const reader = new Reader(text);
  const found = reader.value(false);
  reader.skip();
  if (!reader.done) throw new Unreadable();
  return found;
}

/** What may begin no plain scalar, or begins something that is not read here. */
const STRANGE = /^[&*!|>%@`?,\]}]|^-\s/;

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  get done(): boolean {
    return this.#at >= this.text.length;
  }

  get #rest(): string {
    return this.text.slice(this.#at);
  }

  /** Goes over space, ends of lines and comments. */
  skip(): void {
    const start = this.#at === 0 ? " " : (this.text[this.#at - 1] ?? "");
    const gap = /^(\s+(#[^\n]*)?)+/.exec(this.#rest)?.[0] ?? "";
    this.#at += gap.length;
    if (gap === "" && /\s/.test(start) && this.#rest.startsWith("#")) this.#take(/^#[^\n]*/);
  }

  /** Reads a value, which ends earlier within brackets than on a line of its own. */
  value(within: boolean): Plain {
    this.skip();
    const first = this.#rest[0] ?? "";
    if (first === "[") return this.#list();
    if (first === "{") return this.#map();
    if (first === '"' || first === "'") return this.#quoted();
    return this.#bare(within);
  }

  #take(pattern: RegExp): string {
    const found = pattern.exec(this.#rest)?.[0];
    if (found === undefined) throw new Unreadable();
    this.#at += found.length;
    return found;
  }

  #quoted(): string {
    if (this.#rest.startsWith("'"))
      return this.#take(/^'(?:[^'\n]|'')*'/)
        .slice(1, -1)
        .replaceAll("''", "'");
    return JSON.parse(this.#take(/^"(?:[^"\\\n]|\\.)*"/)) as string;
  }

  #bare(within: boolean): string {
    if (STRANGE.test(this.#rest)) throw new Unreadable();
    const found = this.#take(
      within ? /^[^,[\]{}\n]+?(?=\s*([,[\]{}\n]|$)|\s+#)/ : /^[^\n]+?(?=\s*(\n|$)|\s+#)/,
    );
    if (/:(\s|$)/.test(found)) throw new Unreadable();
    return /^(~|null|Null|NULL)$/.test(found) ? "" : found;
  }

  #list(): Plain {
    return [...this.#items("[", "]", () => this.value(true))];
  }

  #map(): Plain {
    const pair = (): readonly [string, Plain] => {
      const name = this.#take(KEY)
        .replace(/\s*:$/, "")
        .replace(/^["']|["']$/g, "");
      return [name, this.value(true)];
    };
    return new Map(this.#items("{", "}", pair));
  }

  *#items<T>(open: string, close: string, one: () => T): Generator<T> {
    this.#at += open.length;
    for (;;) {
      this.skip();
      if (this.#rest.startsWith(close)) break;
      yield one();
      this.skip();
      if (this.#rest.startsWith(",")) this.#at += 1;
      else if (!this.#rest.startsWith(close)) throw new Unreadable();
    }
    this.#at += close.length;
  }
}
