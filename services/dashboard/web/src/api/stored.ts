/** A definition as it is stored, and what is stored of it where somebody else was faster. */
import { call, Refusal, type Versioned } from "./client";
import type { Definition } from "./shapes";

/** What the server holds, at a version. */
export type Stored = Versioned<Definition>;

/** Somebody else was faster: what is stored now, or null where it is gone. */
export interface Conflict {
  readonly theirs: Stored | null;
}

/** Returns where a definition is read and written. */
export const pathOf = (kind: string, name: string): string =>
  `/definitions/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`;

/** Returns what a write must find there: the version it was made from, or nothing. */
export function madeFrom(stored: Stored | null): Readonly<Record<string, string>> {
  return stored ? { "if-match": stored.etag ?? "" } : { "if-none-match": "*" };
}

const GONE = 404;

/** Reads what is stored now. Rejects where the server does not say: that is no deletion. */
export function conflictOn(path: string): Promise<Conflict> {
  return call<Definition>({ method: "GET", path }).then(
    (theirs) => ({ theirs }),
    (error: unknown) => {
      if (error instanceof Refusal && error.problem.status === GONE) return { theirs: null };
      throw error;
    },
  );
}
