/** What the ledger's minutes say together. Pure. */
import type { LedgerMinute } from "../../api/shapes";

export interface LedgerVerdict {
  readonly broken: number;
  readonly balanced: number;
  readonly says: "broken" | "balanced" | "nothing";
}

/** Tells whether a minute is closed and its account does not add up. */
export function isBroken(minute: LedgerMinute): boolean {
  return !minute.open && minute.difference !== null && minute.difference !== 0;
}

/** Returns the verdict over minutes; those that are open or not kept say nothing. */
export function verdictOf(items: readonly LedgerMinute[]): LedgerVerdict {
  const broken = items.filter(isBroken).length;
  const balanced = items.filter((minute) => !minute.open && minute.difference === 0).length;
  return { broken, balanced, says: broken > 0 ? "broken" : balanced > 0 ? "balanced" : "nothing" };
}
