/** What the page of alerts lists as present: by state, worst first. Pure. */
import type { Alert, Rule, RuleGroup } from "../../api/shapes";
import { type Health, healthOf, isSick, type Sickness, sickOf } from "../../lib/standing";

const HOUR_MS = 3_600_000;
export const SEVERITIES = ["critical", "high", "low", "info"];

/** A row: an alert, a series of which nothing has fired, or rules that are sick for one reason. */
export type Row =
  | {
      readonly kind: "alert";
      readonly alert: Alert;
      readonly rule: Rule | null;
      /** How well its state is known now. */
      readonly health: Health;
    }
  | { readonly kind: "series"; readonly rule: Rule; readonly group: RuleGroup }
  | { readonly kind: "sick"; readonly rules: readonly [Rule, ...Rule[]] };

/** Rows of one state. */
export interface Section {
  readonly state: "firing" | "recovering" | Sickness | "pending" | "no_data" | "changed";
  readonly rows: readonly Row[];
}

export interface Present {
  readonly sections: readonly Section[];
  /** How many rules have nothing to report. */
  readonly ok: number;
}

/** Returns what is listed as present; sections without rows are left out. */
export function presentOf(
  open: readonly Alert[],
  ended: readonly Alert[],
  rules: readonly Rule[],
  nowMs: number,
): Present {
  const byName = new Map(rules.map((rule) => [rule.name, rule]));
  const row = (alert: Alert): Row => {
    const rule = byName.get(alert.rule) ?? null;
    return { kind: "alert", alert, rule, health: rule === null ? "ok" : healthNow(alert, rule) };
  };
  const of = (state: Alert["state"]) =>
    worstFirst(open.filter((one) => one.state === state)).map(row);
  const recent = ended.filter((one) => one.at_ms > nowMs - HOUR_MS).map(row);
  const sections: Section[] = [
    { state: "firing", rows: of("firing") },
    { state: "recovering", rows: of("recovering") },
    { state: "error", rows: sickRows(rules, "error") },
    { state: "stale", rows: sickRows(rules, "stale") },
    { state: "pending", rows: seriesOf(rules, (group) => group.state === "pending") },
    {
      state: "no_data",
      rows: seriesOf(
        rules.filter((rule) => !isSick(rule.health)),
        (one) => one.health === "no_data" && !fires(one) && !pends(one),
      ),
    },
    { state: "changed", rows: recent },
  ];
  return {
    sections: sections.filter((section) => section.rows.length > 0),
    ok: rules.filter((rule) => rule.state === "ok" && rule.health === "ok").length,
  };
}

/** Returns the rules of that health, those together that are so for the same reason. */
function sickRows(rules: readonly Rule[], health: Sickness): readonly Row[] {
  const found = new Map<string | null, [Rule, ...Rule[]]>();
  for (const rule of sickOf(rules).filter((one) => one.health === health)) {
    const same = found.get(rule.why);
    if (same) same.push(rule);
    else found.set(rule.why, [rule]);
  }
  return [...found.values()].map((same): Row => ({ kind: "sick", rules: same }));
}

/** Sorts by severity; what is equally severe stays newest first. */
function worstFirst(alerts: readonly Alert[]): readonly Alert[] {
  const rank = (alert: Alert) => SEVERITIES.indexOf(alert.severity);
  return [...alerts].sort((a, b) => rank(a) - rank(b));
}

const pends = (group: RuleGroup) => group.state === "pending";
const fires = (group: RuleGroup) => group.state === "firing" || group.state === "recovering";

function seriesOf(rules: readonly Rule[], wanted: (group: RuleGroup) => boolean): Row[] {
  return rules
    .filter((rule) => rule.mode !== "stopped")
    .flatMap((rule) =>
      rule.groups.filter(wanted).map((group): Row => ({ kind: "series", rule, group })),
    );
}

/** Returns how well the state of an alert is known now: it is kept, and that is told. */
export function healthNow(alert: Alert, rule: Rule): Health {
  return healthOf(rule, groupOf(alert, rule));
}

/** Returns the series that an alert is of, as far as anything was told of it. */
export function groupOf(alert: Alert, rule: Rule): RuleGroup | undefined {
  const same = (group: RuleGroup) =>
    rule.by.every((name) => (group.by[name] ?? null) === (alert.labels[name] ?? null));
  return rule.groups.find(same);
}

/** Returns the first rows of each section: a rule by path can fire hundreds of times. */
export function firstOf(sections: readonly Section[], most: number): readonly Section[] {
  return sections.map((section) => ({ ...section, rows: section.rows.slice(0, most) }));
}

/** Returns the alerts of a list in its order: what j and k go through. */
export function alertsIn(sections: readonly Section[]): readonly Alert[] {
  return sections.flatMap(({ rows }) =>
    rows.flatMap((row) => (row.kind === "alert" ? [row.alert] : [])),
  );
}

/** Returns the id after or before the chosen one; the first where none is chosen. */
export function moved(ids: readonly string[], chosen: string | null, by: 1 | -1): string | null {
  const at = chosen === null ? -1 : ids.indexOf(chosen);
  if (at < 0) return ids[0] ?? null;
  return ids[Math.min(ids.length - 1, Math.max(0, at + by))] ?? null;
}

/** Returns for how long an alert fires, or did. */
export function lengthMs(alert: Alert, nowMs: number): number {
  const open = alert.state === "firing" || alert.state === "recovering";
  return Math.max(0, (open ? nowMs : alert.at_ms) - alert.since_ms);
}
