/**
 * A rule's form, read from its text and written back into it. Pure.
 *
 * The text is the truth. A change of the form changes the lines of what it changes;
 * members that the form does not show stay as they are.
 */
import type { ProblemPlace } from "../live/wire";
import { type Plain, readMembers, type Spelling, withMember } from "./plain-yaml";

export type Side = "above" | "below" | "outside";
export const SIDES: readonly Side[] = ["above", "below", "outside"];
export const SEVERITIES = ["info", "low", "high", "critical"] as const;
export const MODES = ["active", "shadow", "stopped"] as const;

/** What the form shows, as it is typed. */
export interface RuleForm {
  readonly name: string;
  readonly metric: string;
  readonly aggregate: string;
  readonly window: string;
  readonly by: readonly string[];
  /** Null where it is written as a list, which the form leaves alone. */
  readonly where: string | null;
  readonly side: Side;
  /** The limits: `low` of below and outside, `high` of above and outside. */
  readonly low: string;
  readonly high: string;
  readonly hold: string;
  readonly backLow: string;
  readonly backHigh: string;
  readonly recoverFor: string;
  readonly minEvents: string;
  readonly silence: string;
  readonly tellAfter: string;
  readonly severity: string;
  readonly channels: readonly string[];
  readonly mode: string;
}

const ORDER = [
  ...["kind", "name", "metric", "aggregate", "window", "by", "where", ...SIDES, "for", "recover"],
  ...["recover_for", "min_events", "certain", "decide", "no_data", "severity", "message"],
  ...["labels", "route", "runbook", "mode"],
];
const HOW: Spelling = { order: ORDER, numbers: [...SIDES, "recover", "min_events"] };
const READ = ORDER.filter((name) => !["certain", "decide", "message", "labels"].includes(name));

/** Returns the form of a text; null where only the text itself can show it. */
export function readRule(text: string): RuleForm | null {
  const members = readMembers(text, READ);
  return members && formOf(members);
}

function formOf(members: ReadonlyMap<string, Plain>): RuleForm | null {
  const one = (name: string) => asText(members.get(name));
  const window = members.get("window");
  const unheard = asMap(members.get("no_data"));
  const where = members.get("where");
  const limits = limitsOf(members);
  const texts = {
    name: one("name"),
    metric: one("metric"),
    aggregate: one("aggregate"),
    window: asText(window instanceof Map ? window.get("length") : window),
    hold: one("for"),
    recoverFor: one("recover_for"),
    minEvents: one("min_events"),
    silence: asText(unheard?.get("then")) || "keep",
    tellAfter: asText(unheard?.get("tell_after")),
    severity: one("severity") || "high",
    mode: one("mode") || "active",
  };
  const by = asList(members.get("by"));
  const channels = asList(asMap(members.get("route"))?.get("channels"));
  return {
    ...texts,
    ...limits,
    by,
    channels,
    where: where === undefined || typeof where === "string" ? (where ?? "") : null,
  };
}

type Limits = Pick<RuleForm, "side" | "low" | "high" | "backLow" | "backHigh">;

function limitsOf(members: ReadonlyMap<string, Plain>): Limits {
  const given = SIDES.filter((name) => members.has(name));
  const side = given.find((name) => members.get(name) !== "") ?? given[0] ?? "above";
  const pair = (name: string) => {
    const given = members.get(name);
    if (side === "outside") return [asList(given)[0] ?? "", asList(given)[1] ?? ""] as const;
    const alone = asText(given);
    return side === "below" ? ([alone, ""] as const) : (["", alone] as const);
  };
  const [low, high] = pair(side);
  const [backLow, backHigh] = pair("recover");
  return { side, low, high, backLow, backHigh };
}

const asText = (value: Plain | undefined): string => (typeof value === "string" ? value : "");
const asMap = (value: Plain | undefined) => (value instanceof Map ? value : null);
const asList = (value: Plain | undefined): readonly string[] => {
  if (typeof value === "string") return value === "" ? [] : [value];
  return Array.isArray(value) ? value.map(asText) : [];
};

type Members = ReadonlyMap<string, Plain | null>;

/** Returns the text with what the form says differently. The text must be one that is read. */
export function writeRule(text: string, form: RuleForm): string {
  const old = readMembers(text, READ);
  const before = old && formOf(old);
  if (!old || !before) return text;
  const was = membersOf(before, old);
  let written = text;
  for (const [name, value] of membersOf(form, old)) {
    if (same(value, was.get(name))) continue;
    written = withMember(written, name, value, HOW);
  }
  return written;
}

const same = (a: Plain | null | undefined, b: Plain | null | undefined) => told(a) === told(b);
const told = (value: unknown): string =>
  JSON.stringify(value ?? null, (_, one: unknown) => (one instanceof Map ? [...one] : one));

/** Returns what a form says as members; null: left out. */
function membersOf(form: RuleForm, old: ReadonlyMap<string, Plain>): Members {
  const unless = (value: string, usual = "") => (value === usual ? null : value);
  const window = old.get("window");
  return new Map<string, Plain | null>([
    ["name", form.name],
    ["metric", form.metric],
    ["aggregate", form.aggregate],
    ["window", window instanceof Map ? new Map([...window, ["length", form.window]]) : form.window],
    ["by", form.by.length > 0 ? form.by : null],
    ...(form.where === null ? [] : [["where", unless(form.where)] as const]),
    ...SIDES.map((side) => [side, side === form.side ? limitOf(form) : null] as const),
    ["for", unless(form.hold)],
    ["recover", backOf(form)],
    ["recover_for", unless(form.recoverFor)],
    ["min_events", unless(form.minEvents)],
    ["no_data", silenceOf(form, asMap(old.get("no_data")))],
    ["severity", form.severity],
    ["route", routeOf(form, asMap(old.get("route")))],
    ["mode", unless(form.mode, "active")],
  ]);
}

function limitOf({ side, low, high }: RuleForm): Plain {
  return side === "outside" ? [low, high] : side === "below" ? low : high;
}

function backOf({ side, backLow, backHigh }: RuleForm): Plain | null {
  if (side === "outside") return backLow || backHigh ? [backLow, backHigh] : null;
  return (side === "below" ? backLow : backHigh) || null;
}

function silenceOf(form: RuleForm, old: ReadonlyMap<string, Plain> | null): Plain | null {
  const map = new Map(old ?? []);
  if (form.silence !== "keep" || map.has("then")) map.set("then", form.silence);
  if (form.tellAfter) map.set("tell_after", form.tellAfter);
  else map.delete("tell_after");
  return map.size > 0 ? map : null;
}

function routeOf(form: RuleForm, old: ReadonlyMap<string, Plain> | null): Plain | null {
  const map = new Map(old ?? []);
  if (form.channels.length > 0) map.set("channels", form.channels);
  else map.delete("channels");
  return map.size > 0 ? map : null;
}

/** Returns the form with its limit on another side; what it recovered at is on none. */
export function onSide(form: RuleForm, side: Side): RuleForm {
  const known = form.high || form.low;
  const low = side === "above" ? "" : form.low || (side === "below" ? known : "0");
  const high = side === "below" ? "" : known;
  return { ...form, side, low, high, backLow: "", backHigh: "" };
}

/** What a new rule is begun with. */
export interface Beginning {
  readonly name: string;
  readonly metric: string;
  readonly aggregate: string;
  readonly window: string;
  readonly by: readonly string[];
}

/** Returns the text of a new rule, which lacks its limit. */
export function newRule({ name, metric, aggregate, window, by }: Beginning): string {
  const start =
    'kind: rule\nname: ""\nmetric: ""\naggregate: ""\nwindow: ""\nabove: ""\nseverity: high\n';
  const form = readRule(start);
  return form ? writeRule(start, { ...form, name, metric, aggregate, window, by }) : start;
}

/** A field of the form that an error can stand at. */
export type Field =
  | Exclude<keyof RuleForm, "low" | "high" | "backLow" | "backHigh">
  | "limit"
  | "recover";

const FIELDS: ReadonlyMap<string, Field> = new Map([
  ...(["name", "metric", "aggregate", "window", "by", "where", "severity", "mode"] as const).map(
    (name) => [name, name] as const,
  ),
  ...SIDES.map((side) => [side, "limit"] as const),
  ["for", "hold"],
  ["recover", "recover"],
  ["recover_for", "recoverFor"],
  ["min_events", "minEvents"],
  ["no_data", "tellAfter"],
  ["route", "channels"],
]);

/** Returns the field that an error of the check belongs to; null if the form has none. */
export function ruleFieldOf(place: ProblemPlace): Field | null {
  const [, first = "", second = ""] = place.pointer.split("/");
  // What concerns several members has the whole as its place.
  if (first === "") {
    if (place.required.startsWith("a recover")) return "recover";
    return place.required.startsWith("a rule with one of above") ? "limit" : null;
  }
  if (first === "window" && second === "step") return null;
  if (first === "no_data" && second === "then") return "silence";
  return FIELDS.get(first) ?? null;
}

/** Returns the errors by field, and those that have none. */
export function sorted(errors: readonly ProblemPlace[]): {
  readonly faults: ReadonlyMap<Field, ProblemPlace>;
  readonly rest: readonly ProblemPlace[];
} {
  const faults = new Map<Field, ProblemPlace>();
  for (const place of errors) {
    const field = ruleFieldOf(place);
    if (field !== null && !faults.has(field)) faults.set(field, place);
  }
  return { faults, rest: errors.filter((place) => ruleFieldOf(place) === null) };
}

/** Returns the name in a text, also in one that the form cannot show; empty without one. */
export function nameIn(text: string): string {
  const named = /^\s*"?name"?\s*:\s*["']?([a-z][a-z0-9_]*)/m.exec(text)?.[1] ?? "";
  return readRule(text)?.name ?? named;
}

/** Whether the form of a rule has no limit yet. */
export const lacksLimit = (form: RuleForm): boolean => form.low === "" && form.high === "";

/**
 * Returns the text as a backtest and a preview take it, or null while its limit is still to
 * come; a name that is still to come changes nothing.
 */
export function testedText(text: string): string | null {
  const form = readRule(text);
  if (form && lacksLimit(form)) return null;
  return form?.name === "" ? writeRule(text, { ...form, name: "unnamed" }) : text;
}
