/** Reading from the API inside a page: loading, an answer, or a refusal. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../live/wire";
import { get, problemOf } from "./client";

export interface Loaded<T> {
  /** The newest answer; stays while a newer one is fetched. */
  readonly body: T | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
  reload(): void;
}

/** An answer that takes longer is none: what hangs must not end the reading. */
const GIVEN_UP_MS = 30_000;

/**
 * Reads a path, again whenever it changes and every `everyMs` if given; null reads nothing.
 *
 * A reading that is due waits for the one under way, so that an answer which takes longer than
 * `everyMs` is seen; `reload` asks anew at once.
 */
export function useLoad<T>(path: string | null, everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({
    body: null,
    problem: null,
    loading: path !== null,
  });
  const [turn, setTurn] = useState(0);
  const shownPath = useRef(path);
  const asking = useRef(false);
  // `turn` asks for another reading
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    const sameThing = shownPath.current === path;
    shownPath.current = path;
    if (!sameThing) setState({ body: null, problem: null, loading: true });
    asking.current = true;
    get<T>(path, AbortSignal.any([abort.signal, AbortSignal.timeout(GIVEN_UP_MS)])).then(
      (body) => {
        if (abort.signal.aborted) return;
        asking.current = false;
        setState({ body, problem: null, loading: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        asking.current = false;
        setState((before) => ({ ...before, problem: problemOf(error), loading: false }));
      },
    );
    return () => {
      asking.current = false;
      abort.abort();
    };
  }, [path, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden && !asking.current) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);
  return { ...state, reload };
}
