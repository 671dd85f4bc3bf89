/** Reading how late events were. */
import { useEffect, useRef, useState } from "preact/hooks";
import { DAY_HOURS, fewerHours } from "../lib/lateness";
import type { Problem } from "../live/wire";
import { type Loaded, useLoad } from "./load";
import type { LatenessTold } from "./shapes";

/** Reads it of a metric's events, or of all, in the last day: in less where that is too much. */
export function useLateness(metric: string | null, everyMs: number): Loaded<LatenessTold> {
  const [hours, setHours] = useState(DAY_HOURS);
  const followed = useRef<Problem | null>(null);
  const of = metric === null ? "" : `metric=${encodeURIComponent(metric)}&`;
  const loaded = useLoad<LatenessTold>(`/lateness?${of}hours=${hours}`, everyMs);
  const { problem } = loaded;
  const fewer = problem && problem !== followed.current ? fewerHours(hours, problem) : null;
  useEffect(() => {
    if (fewer === null) return;
    followed.current = problem;
    setHours(fewer);
  }, [problem]);
  // Of one that is followed nobody need be told.
  const isTold = fewer === null && problem !== followed.current;
  return isTold ? loaded : { ...loaded, problem: null };
}
