/** Whether a part of the screen is still there when an answer comes late. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Tells whether its component is still on the page. */
export function useOpen(): Readonly<RefObject<boolean>> {
  const open = useRef(true);
  useEffect(
    () => () => {
      open.current = false;
    },
    [],
  );
  return open;
}
