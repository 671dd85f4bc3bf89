/** What the server says of a text: asked anew a moment after each change, the newest alone. */
import { useEffect, useState } from "preact/hooks";
import { problemOf } from "../../api/client";
import { session } from "../../lib/session";
import type { Problem } from "../../live/wire";

const PAUSE_MS = 150;
const AGAIN_MS = 1_000;

/** The newest answer; `old`: it is of a text that has been changed since. */
export interface Asked<T> {
  readonly answer: T | null;
  readonly problem: Problem | null;
  readonly old: boolean;
}

interface Found<T> {
  readonly text: string | null;
  readonly answer: T | null;
  readonly problem: Problem | null;
}

/** Asks about a text; null asks nothing. `ask` must not depend on anything that changes. */
export function useAsked<T>(
  text: string | null,
  ask: (text: string, signal: AbortSignal) => Promise<T>,
): Asked<T> {
  const [found, setFound] = useState<Found<T>>({ text: null, answer: null, problem: null });
  const ready = session.value?.signed_in ?? false;
  useEffect(() => {
    if (text === null || !ready) return;
    const abort = new AbortController();
    let timer = 0;
    const send = () => {
      ask(text, abort.signal).then(
        (answer) => !abort.signal.aborted && setFound({ text, answer, problem: null }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const problem = problemOf(error);
          setFound((before) => ({ ...before, text, problem }));
          // Busy or away: the question stands.
          if (problem.status === 429 || problem.status === 0 || problem.status >= 500)
            timer = window.setTimeout(send, AGAIN_MS);
        },
      );
    };
    timer = window.setTimeout(send, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, ready]);
  const { answer, problem } = found;
  return { answer, problem, old: text === null || found.text !== text || problem !== null };
}
