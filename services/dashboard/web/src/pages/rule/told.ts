/** What the page says of mistakes: each once, at its field or else in one alert. Pure. */

import type { Checked } from "../../lib/draft";
import { type Field, type RuleForm, sorted } from "../../lib/rule-text";
import type { Problem, ProblemPlace } from "../../live/wire";
import { words as allWords } from "../../messages.en";
import { ruleWords as words } from "../../messages.rules.en";

export interface Told {
  readonly errors: readonly ProblemPlace[];
  readonly faults: ReadonlyMap<Field, ProblemPlace>;
  /** What stands at no field. */
  readonly alert: Problem | null;
}

/**
 * Sorts what is wrong; a text without a form shows all that has a place.
 *
 * What is still to be filled in is wrong only once somebody wants to save.
 */
export function toldOf(
  problem: Problem | null,
  checked: Checked | null,
  form: RuleForm | null,
): Told {
  const found = problem?.errors ?? checked?.errors ?? [];
  const { faults, rest } = sorted(found);
  const open = new Set<Field>();
  if (problem === null && form) {
    if (form.name === "") open.add("name");
    if (form[form.side === "below" ? "low" : "high"] === "") open.add("limit");
  }
  const shown = new Map([...faults].filter(([field]) => !open.has(field)));
  const message =
    problem?.message ?? (checked && !checked.ok && !checked.old ? checked.message : "");
  const untold = found.length === 0 || (form !== null && rest.length > 0);
  if (!message || !untold) return { errors: found, faults: shown, alert: null };
  const [first] = rest;
  const said = first ? `${first.pointer} ${allWords.errors.required(first)}`.trim() : message;
  const code = problem?.code ?? checked?.code ?? "";
  const status = problem?.status ?? 422;
  return {
    errors: found,
    faults: shown,
    alert: { status, code, message: said, errors: rest.slice(1) },
  };
}

/** Returns the filter as the check reads it. */
export const whereOf = (parsed: unknown): readonly unknown[] => {
  const where = (parsed as { where?: unknown } | null | undefined)?.where;
  return Array.isArray(where) ? where : [];
};

/** Returns why nothing is asked, or was not answered; what stands at a field is not said again. */
export function waitOf(lacks: boolean, problem: Problem | null): string | null {
  if (lacks) return words.test.waitsLimit;
  if (problem === null) return null;
  return problem.status === 422 ? words.test.waits : problem.message;
}
