/** Which fields the events of the tail have: how often filled, and with what. Pure. */
import type { TailEvent } from "../live/wire";
import { words } from "../messages.en";
import { percent, short } from "./numbers";

export type FieldType = "number" | "text" | "truth" | "list";

/** One field of one type of events. */
export interface Field {
  readonly path: string;
  readonly type: FieldType;
  /** Share of the events that have it, 0 to 1. */
  readonly filled: number;
  readonly values: string;
  readonly distinct: number;
}

const MAX_FIELDS = 300;
const MAX_DEPTH = 6;
const MANY = 20;

/** Returns the fields of a type, in the order in which events name them. */
export function fieldsOf(events: readonly TailEvent[]): readonly Field[] {
  const seen = new Map<string, unknown[]>();
  for (const event of events) {
    if (event.subject) add(seen, "subject", event.subject);
    walk(seen, "data", parsed(event), 0);
  }
  return [...seen].map(([path, values]) => fieldOf(path, values, events.length));
}

function parsed(event: TailEvent): unknown {
  if (event.cut) return null;
  try {
    return JSON.parse(event.data);
  } catch {
    return null;
  }
}

function add(seen: Map<string, unknown[]>, path: string, value: unknown): void {
  const known = seen.get(path);
  if (known) known.push(value);
  else if (seen.size < MAX_FIELDS) seen.set(path, [value]);
}

function walk(seen: Map<string, unknown[]>, path: string, value: unknown, depth: number): void {
  if (value === null || value === undefined) return;
  if (typeof value !== "object" || Array.isArray(value)) {
    if (path !== "data") add(seen, path, value);
    return;
  }
  if (depth >= MAX_DEPTH) return;
  for (const [name, inner] of Object.entries(value))
    walk(seen, `${path}.${name}`, inner, depth + 1);
}

function fieldOf(path: string, values: readonly unknown[], events: number): Field {
  const type = typeOf(values);
  const counts = new Map<string, number>();
  for (const value of values) {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return {
    path,
    type,
    filled: events === 0 ? 0 : values.length / events,
    values: type === "number" ? numberWords(values) : textWords(counts, values.length),
    distinct: counts.size,
  };
}

function typeOf(values: readonly unknown[]): FieldType {
  const every = (kind: string) => values.every((value) => typeof value === kind);
  const numbers = values.filter((value) => typeof value === "number").length;
  // One stray text among many numbers does not make a text of them.
  if (numbers > values.length / 2) return "number";
  if (every("boolean")) return "truth";
  return values.some((value) => typeof value === "object") ? "list" : "text";
}

function numberWords(values: readonly unknown[]): string {
  const sorted = values.filter((v): v is number => typeof v === "number").sort((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  return words.live.p50max(short(middle), short(sorted.at(-1)));
}

function textWords(counts: ReadonlyMap<string, number>, all: number): string {
  if (counts.size > MANY) return words.live.different(counts.size);
  const most = [...counts].sort((a, b) => b[1] - a[1]);
  const named = most
    .slice(0, 2)
    .map(([text, n]) => `${cut(text)} ${percent(Math.round((n / all) * 100) / 100)}`);
  const rest = most.length - named.length;
  return rest > 0 ? `${named.join(", ")}, +${rest}` : named.join(", ");
}

const cut = (text: string) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
