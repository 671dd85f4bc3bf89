/** What is said aloud of alerts: a new firing, at most one sentence in five seconds. Pure. */
import type { Alert } from "../api/shapes";
import { words } from "../messages.en";
import { titleOf } from "./rule-title";

export const QUIET_MS = 5_000;

/** What was there, what waits to be said, and what was said when. */
export interface Said {
  /** Alerts that were seen; null before the first reading: what fires already is no news. */
  readonly known: ReadonlySet<string> | null;
  readonly waiting: readonly string[];
  readonly text: string;
  readonly atMs: number;
}

export const NOTHING_SAID: Said = {
  known: null,
  waiting: [],
  text: "",
  atMs: Number.NEGATIVE_INFINITY,
};

/** Returns what is said after a reading of what fires. */
export function saidAfter(before: Said, open: readonly Alert[], nowMs: number): Said {
  const known = new Set(open.map((one) => one.id));
  if (before.known === null) return { ...before, known };
  const fresh = [...known].filter((id) => !before.known?.has(id));
  const waiting = [...before.waiting.filter((id) => known.has(id)), ...fresh];
  if (waiting.length === 0 || nowMs - before.atMs < QUIET_MS) return { ...before, known, waiting };
  const first = open.find((one) => one.id === waiting[0]);
  const text =
    waiting.length === 1 && first
      ? words.alertNews.one(titleOf(first.rule))
      : words.alertNews.several(waiting.length);
  return { known, waiting: [], text, atMs: nowMs };
}
