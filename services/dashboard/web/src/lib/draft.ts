/** A metric that is being made: the form's fields, and the definition that they spell. Pure. */
import type { Validation } from "../api/shapes";
import type { ProblemPlace } from "../live/wire";

export interface Draft {
  readonly name: string;
  readonly type: string;
  readonly where: string;
  readonly value: string;
  readonly unit: string;
  readonly by: string;
  readonly aggregates: readonly string[];
  readonly resolution: string;
  readonly allowed_lateness: string;
}

export const EMPTY_DRAFT: Draft = {
  name: "",
  type: "",
  where: "",
  value: "",
  unit: "",
  by: "",
  aggregates: ["count", "rate"],
  resolution: "10s",
  allowed_lateness: "",
};

export const RESOLUTIONS = ["1s", "10s", "1m", "1h"] as const;

/** Aggregates that need a value. */
const OF_VALUE = ["avg", "sum", "min", "max", "stddev", "last", "p50", "p95", "p99"];
const COUNTING = ["count", "rate"];

/** Returns the aggregates that a draft can choose from, with what it has chosen by itself. */
export function choicesOf(draft: Draft): readonly string[] {
  const own = draft.aggregates.filter((one) => !OF_VALUE.includes(one) && !COUNTING.includes(one));
  return [...COUNTING, ...(draft.value.trim() ? OF_VALUE : []), ...own];
}

/** Returns the draft with aggregates that fit: without a value nothing can be averaged. */
export function fitting(draft: Draft): Draft {
  if (draft.value.trim()) return draft;
  const kept = draft.aggregates.filter((one) => !OF_VALUE.includes(one));
  return { ...draft, aggregates: kept.length > 0 ? kept : ["count"] };
}

/** Returns the dimensions by which a draft splits: commas in brackets and in quotes are theirs. */
export function dimensionsOf(draft: Draft): readonly string[] {
  const found = [""];
  let quote = "";
  let depth = 0;
  for (const sign of draft.by) {
    if (quote) quote = sign === quote ? "" : quote;
    else if (sign === "'" || sign === '"') quote = sign;
    else if (sign === "(") depth += 1;
    else if (sign === ")") depth = Math.max(0, depth - 1);
    if (sign === "," && !quote && depth === 0) found.push("");
    else found[found.length - 1] += sign;
  }
  return found.map((one) => one.trim()).filter(Boolean);
}

/** Returns a scalar as YAML: plain where nothing can be misread, else in double quotes. */
export function scalar(text: string): string {
  // A JSON string is a YAML string; words such as `no` and `1` would be read as something else.
  return /^[A-Za-z_][\w./()-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

const list = (items: readonly string[]) => `[${items.map(scalar).join(", ")}]`;

/** Returns the definition that a draft spells. */
export function yamlOf(draft: Draft): string {
  const by = dimensionsOf(draft);
  const lines = [
    "kind: metric",
    `name: ${scalar(draft.name.trim() || "unnamed")}`,
    draft.type.trim() && `events: {type: ${scalar(draft.type.trim())}}`,
    draft.where.trim() && `where: ${scalar(draft.where.trim())}`,
    draft.value.trim() && `value: ${scalar(draft.value.trim())}`,
    draft.unit.trim() && `unit: ${scalar(draft.unit.trim())}`,
    by.length > 0 && `by: ${list(by)}`,
    `aggregates: ${list(draft.aggregates)}`,
    `resolution: ${draft.resolution}`,
    draft.allowed_lateness.trim() && `allowed_lateness: ${scalar(draft.allowed_lateness.trim())}`,
  ];
  return `${lines.filter(Boolean).join("\n")}\n`;
}

/** What of a draft is typed, or chosen for good; aggregates go with the value. */
const FIELDS = [
  ...(["name", "type", "where", "value", "unit", "by", "resolution"] as const),
  "allowed_lateness",
] as const;
type Typed = (typeof FIELDS)[number];

/** Returns the fields in which a draft is another than it was begun. */
export function typedOf(begun: Draft, draft: Draft): readonly Typed[] {
  return FIELDS.filter((field) => draft[field].trim() !== begun[field].trim());
}

/** Tells whether a field of a draft is in the next one; dimensions may have been joined by others. */
export function isStillIn(next: Draft, draft: Draft, field: Typed): boolean {
  if (field !== "by") return next[field] === draft[field];
  const dimensions = dimensionsOf(next);
  return dimensionsOf(draft).every((one) => dimensions.includes(one));
}

/** Returns a name made from a type and a field, within what names may be. */
export function nameFor(type: string, field: string): string {
  const last = (text: string) => text.split(".").at(-1) ?? "";
  const words = [type.split(".").slice(-2).join("_"), field ? last(field) : ""];
  const name = words
    .filter(Boolean)
    .join("_")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_");
  return name
    .replace(/^[^a-z]+/, "")
    .replace(/_+/g, "_")
    .slice(0, 64);
}

/** Returns the field of the form that an error of the check belongs to. */
export function fieldOf(pointer: string): keyof Draft | null {
  const first = pointer.split("/")[1] ?? "";
  if (first === "events") return "type";
  return first in EMPTY_DRAFT ? (first as keyof Draft) : null;
}

export type Faults = ReadonlyMap<keyof Draft, ProblemPlace>;

/** Returns what is wrong, by field. A field that is still to be filled in is wrong only if `asked`. */
export function faultsOf(errors: readonly ProblemPlace[], draft: Draft, asked: boolean): Faults {
  const faults = new Map<keyof Draft, ProblemPlace>();
  for (const place of errors) {
    const field = fieldOf(place.pointer);
    if (field !== null && (asked || draft[field] !== "")) faults.set(field, place);
  }
  return faults;
}

/** What the preview tries; `why` it cannot, where it cannot. */
export interface Tried {
  readonly text: string;
  readonly valid: boolean;
  readonly why: ProblemPlace | null;
}

/** What the check says; `old`: of a text that has been changed since. */
export type Checked = Validation & { readonly old?: boolean };

/** Returns what can be tried of a draft (null: of its text): a name changes nothing of it. */
export function triedOf(draft: Draft | null, text: string, validation: Checked | null): Tried {
  if (validation === null || validation.ok) return { text, valid: validation !== null, why: null };
  const others = validation.errors.filter((place) => place.pointer !== "/name");
  if (validation.old) return { text, valid: false, why: others[0] ?? null };
  if (draft !== null && validation.errors.length > 0 && others.length === 0) {
    return { text: yamlOf({ ...draft, name: "" }), valid: true, why: null };
  }
  return { text, valid: false, why: others[0] ?? validation.errors[0] ?? null };
}
