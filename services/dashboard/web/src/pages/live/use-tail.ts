/** The tail as a page follows it: filtered by the server, held still on demand. */
import { useEffect, useRef, useState } from "preact/hooks";
import { live, nowMs } from "../../live/live";
import { EMPTY_TAIL, type Tail, tailAfter, withFates } from "../../live/tail";
import type { Problem, TailFilter } from "../../live/wire";

const PAUSE_MS = 250;

export interface FollowedTail {
  readonly state: Tail;
  /** Events that arrived while the tail was held. */
  readonly newer: number;
  readonly held: boolean;
  readonly problem: Problem | null;
  setHeld(held: boolean): void;
}

/** Returns the filter that a text asks for: a type, a condition on a field, or any text. */
export function filterOf(text: string): TailFilter {
  const wanted = text.trim();
  if (wanted === "") return {};
  const condition = /^(data\.\S+?)\s*(!=|<=|>=|=|<|>)\s*(.+)$/.exec(wanted);
  if (condition) {
    const [, path = "", op = "=", value = ""] = condition;
    return { where: [[path, op, literal(value)]] };
  }
  return wanted.endsWith("*") ? { type: wanted } : { text: wanted };
}

function literal(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.replace(/^'(.*)'$/, "$1");
  }
}

/** Follows the tail through a filter; a changed filter starts anew, null follows nothing. */
export function useTail(filter: string | null): FollowedTail {
  const [state, setState] = useState(EMPTY_TAIL);
  const [held, setHeld] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const newest = useRef(EMPTY_TAIL);
  const still = useRef(held);
  still.current = held;
  useEffect(() => {
    newest.current = EMPTY_TAIL;
    setState(EMPTY_TAIL);
    setProblem(null);
    setHeld(false);
    if (filter === null) return;
    let leave = () => {};
    let frame = 0;
    const draw = () => {
      frame = 0;
      if (still.current) setState((shown) => withFates(shown, newest.current));
      else setState(newest.current);
    };
    const timer = setTimeout(
      () => {
        leave = live.frames({ to: "tail", filter: filterOf(filter) }, (told) => {
          if (told.op === "error") setProblem(told.problem);
          if (told.op !== "tail") return;
          newest.current = tailAfter(newest.current, told, nowMs.value);
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
  return {
    state,
    newer: held ? newest.current.total - state.total : 0,
    held,
    problem,
    setHeld: (next) => {
      setHeld(next);
      if (!next) setState(newest.current);
    },
  };
}
