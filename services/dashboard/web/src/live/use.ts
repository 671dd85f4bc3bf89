/** Following queries and tails from components. */

import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Followed } from "./client";
import { EMPTY_FEED, type Feed } from "./feed";
import { live } from "./live";

const SETTLED_MS = 500;

export type Query = Readonly<Record<string, unknown>>;

/** What several queries say, and whether it is what was asked last. */
export interface Followeds {
  readonly feeds: readonly Feed[];
  /** The newest answer is to an older question: it stays, dimmed, until the new one is there. */
  readonly old: boolean;
}

/** Follows queries while `visible`; answers to the previous ones stay until the new are there. */
export function useQueries(queries: readonly Query[], visible: boolean): Followeds {
  const text = JSON.stringify(queries);
  const [followed, setFollowed] = useState<{ text: string; all: readonly Followed[] }>();
  const before = useRef<readonly Feed[]>([]);
  // the text says what the queries are
  useEffect(() => {
    if (!visible) return;
    const all = queries.map((query) => live.query(query));
    setFollowed({ text, all });
    return () => {
      for (const one of all) one.release();
    };
  }, [text, visible]);
  const feeds = followed?.all.map((one) => one.state.value) ?? [];
  const answered = feeds.length > 0 && feeds.every((f) => f.model !== null || f.problem !== null);
  if (answered) before.current = feeds;
  const current = followed?.text === text;
  if (answered) return { feeds, old: !current };
  const kept = before.current.length > 0 ? before.current : queries.map(() => EMPTY_FEED);
  return { feeds: kept, old: before.current.length > 0 };
}

/** Acts once the metrics may be others than before, and once for many signs of that. */
export function useChanges(act: () => void): void {
  const changes = live.changes.value;
  const first = useRef(changes);
  useEffect(() => {
    if (changes === first.current) return;
    const timer = setTimeout(act, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [changes]);
}

/** Tells whether an element is on the screen, or nearly. */
export function useVisible<E extends Element>(): [RefObject<E | null>, boolean] {
  const element = useRef<E>(null);
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver(
      (entries) => setVisible(entries.some((entry) => entry.isIntersecting)),
      { rootMargin: "200px" },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return useMemo(() => [element, visible], [visible]);
}
