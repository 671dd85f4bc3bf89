/** A change that is sent to the server, one call at a time, and why it was refused. */
import { useState } from "preact/hooks";
import { problemOf } from "../../api/client";
import type { Problem } from "../../live/wire";

/** What the button of a change needs. */
export interface Sending {
  readonly busy: boolean;
  readonly problem: Problem | null;
  /** Sends it, unless one is under way; `after` is called when it was taken. */
  send(work: () => Promise<unknown>, after: () => void): Promise<void>;
}

/** Follows the calls of one button. */
export function useSending(): Sending {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const send = async (work: () => Promise<unknown>, after: () => void) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    await work().then(after, (error: unknown) => setProblem(problemOf(error)));
    setBusy(false);
  };
  return { busy, problem, send };
}
