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

/** Reads a path, again whenever it changes and every `everyMs` if given; null reads nothing. */
export function useLoad<T>(path: string | null, everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({
    body: null,
    problem: null,
    loading: path !== null,
  });
  const [turn, setTurn] = useState(0);
  const shownPath = useRef(path);
  // `turn` asks for another reading
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    const sameThing = shownPath.current === path;
    shownPath.current = path;
    if (!sameThing) setState({ body: null, problem: null, loading: true });
    get<T>(path, abort.signal).then(
      (body) => setState({ body, problem: null, loading: false }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...before, problem: problemOf(error), loading: false }));
      },
    );
    return () => abort.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);
  return { ...state, reload };
}
