/** Silences as texts: the labels of an alert as a condition, a condition as people read it. Pure. */
import type { Alert, Rule, Silence } from "../../api/shapes";
import { titleOf } from "../../lib/rule-title";
import { actWords } from "../../messages.channels.en";

const said = actWords.silences;

/** What a silence is asked for. */
export interface Asked {
  readonly rule: string;
  readonly where: string;
}

/** Returns what hides an alert and others of its rule in the same place. */
export function askedOf(alert: Alert, rule: Rule | null): Asked {
  const labels = new Map(Object.entries(alert.labels));
  const names = (rule?.by ?? []).filter((name) => labels.has(name));
  const where = names.map((name) => conditionOf(name, labels.get(name) ?? null)).join(" and ");
  return { rule: alert.rule, where };
}

function conditionOf(name: string, value: string | null): string {
  return value === null ? `${name} is null` : `${name} = '${value.replaceAll("'", "''")}'`;
}

/** Returns what a silence hides, in words: its rule, and the labels. */
export function whatOf(silence: Pick<Silence, "rule" | "where">): string {
  const rule = silence.rule === null ? said.any : titleOf(silence.rule);
  return [rule, ...silence.where.map(conditionText)].join(" · ");
}

function conditionText([name, op, value]: readonly unknown[]): string {
  const values = Array.isArray(value) ? value : [value];
  const text = values.map((one) => (one === null ? said.empty : String(one))).join(", ");
  return `${name} ${op} ${text}`;
}
