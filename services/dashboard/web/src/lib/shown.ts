/** Freshness as tiles and charts need it: until when the numbers are known. */
import { computed } from "@preact/signals";
import { disconnected, fresh, live } from "../live/live";
import { words } from "../messages.en";
import { clock } from "./time";
import { zone } from "./view";

/** Since when nothing new is counted; null while all is well. */
export const staleMs = computed(() => {
  const now = fresh.value;
  if (now === null || (now.status !== "stale" && now.status !== "behind")) return null;
  // Up to processed-through everything is counted: the line is known until there.
  return now.processed_through_ms ?? now.since_ms;
});

/** When this screen last heard of the server, by its clock, if it has lost it. */
export const lostMs = computed(() => {
  const { lastFrameMs, offsetMs } = live.link.value;
  return disconnected.value ? (lastFrameMs ?? 0) + offsetMs : null;
});

/** What is written over the time that nothing is known about. */
export const staleText = computed(() =>
  staleMs.value === null
    ? ""
    : (fresh.value?.status === "behind" ? words.chart.countedTo : words.chart.nothingSince)(
        clock(staleMs.value, zone.value, "second"),
      ),
);
