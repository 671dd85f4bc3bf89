/** Says aloud what begins to fire, once, and nothing that ticks. */
import { useEffect, useState } from "preact/hooks";
import { openAlerts, useReader } from "../lib/alerts";
import { NOTHING_SAID, saidAfter } from "../lib/announce";

/** The page's one polite live region for alerts. */
export function Announcer() {
  const { items } = useReader(openAlerts);
  const [said, setSaid] = useState(NOTHING_SAID);
  // each reading is another list
  useEffect(() => {
    // Whoever signs in next starts with what fires then.
    if (items === null) setSaid(NOTHING_SAID);
    else setSaid((before) => saidAfter(before, items, performance.now()));
  }, [items]);
  return (
    <p class="sr" role="status" aria-live="polite" data-testid="alert-news">
      {said.text}
    </p>
  );
}
