/** The tail as a page follows it: filtered by the server, held still on demand. */
import { useEffect, useRef, useState } from "preact/hooks";
import { live, nowMs } from "../../live/live";
import { EMPTY_TAIL, shownTail, type Tail, tailAfter, tailForgotten } from "../../live/tail";
import type { Problem } from "../../live/wire";
import { filterOf } from "./filter";

const PAUSE_MS = 250;

export interface FollowedTail {
  /** All that arrived: it is never held. */
  readonly newest: Tail;
  /** What is shown. */
  readonly state: Tail;
  /** Events that arrived while it was held. */
  readonly newer: number;
  readonly problem: Problem | null;
}

/** Follows the tail through a filter; a changed filter starts anew, null follows nothing. */
export function useTail(filter: string | null, held: boolean): FollowedTail {
  const [newest, setNewest] = useState(EMPTY_TAIL);
  const [problem, setProblem] = useState<Problem | null>(null);
  const shown = useRef(EMPTY_TAIL);
  useEffect(() => {
    let latest = EMPTY_TAIL;
    setNewest(latest);
    setProblem(null);
    if (filter === null) return;
    let leave = () => {};
    let frame = 0;
    const draw = () => {
      frame = 0;
      setNewest(latest);
    };
    const timer = setTimeout(
      () => {
        leave = live.frames({ to: "tail", filter: filterOf(filter) }, (told) => {
          if (told.op === "error") setProblem(told.problem);
          if (told.op === "subscribed") {
            setProblem(null);
            latest = tailForgotten(latest);
          } else if (told.op === "tail") latest = tailAfter(latest, told, nowMs.value);
          else return;
          if (frame === 0) frame = requestAnimationFrame(draw);
        });
      },
      filter === "" ? 0 : PAUSE_MS,
    );
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
      leave();
    };
  }, [filter]);
  // Folded while it is drawn, so that no event is seen between a pause and its effect.
  shown.current = shownTail(shown.current, newest, held);
  return { newest, state: shown.current, newer: newest.total - shown.current.total, problem };
}
