/** The backtest of a text: asked anew a moment after each change, the newest question alone. */
import { useEffect, useState } from "preact/hooks";
import { post, problemOf } from "../../api/client";
import type { Backtest } from "../../api/schema";
import { nowMs } from "../../live/live";
import type { Problem } from "../../live/wire";

const PAUSE_MS = 150;
const AGAIN_MS = 1_000;
export const DAY_MS = 86_400_000;

/** The newest answer; `old`: it is of a text that has been changed since. */
export interface Tested {
  readonly answer: Backtest | null;
  readonly problem: Problem | null;
  readonly old: boolean;
}

const NOTHING = { text: null, answer: null, problem: null } as const;

/** Asks when a rule would have fired in the last 24 h; null asks nothing. */
export function useBacktest(text: string | null): Tested {
  const [found, setFound] = useState<{
    readonly text: string | null;
    readonly answer: Backtest | null;
    readonly problem: Problem | null;
  }>(NOTHING);
  useEffect(() => {
    if (text === null) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = () => {
      const toMs = Math.floor(nowMs.peek());
      const asked = { rule: text, from_ms: toMs - DAY_MS, to_ms: toMs };
      post<Backtest>("/backtest", asked, abort.signal).then(
        (answer) => !abort.signal.aborted && setFound({ text, answer, problem: null }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const problem = problemOf(error);
          setFound((before) => ({ ...before, text, problem }));
          // Busy or away: the question stands.
          if (problem.status === 429 || problem.status === 0 || problem.status >= 500)
            timer = window.setTimeout(ask, AGAIN_MS);
        },
      );
    };
    timer = window.setTimeout(ask, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const { answer, problem } = found;
  return { answer, problem, old: text === null || found.text !== text || problem !== null };
}
