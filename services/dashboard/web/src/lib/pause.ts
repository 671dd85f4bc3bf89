/** Holding the screen still, and going on with the newest. */
import { computed, signal } from "@preact/signals";
import { live, nowMs } from "../live/live";

/** Since when the screen is held, by the server's clock; null while it moves. */
export const pausedMs = signal<number | null>(null);

/** The instant up to which charts are drawn: now, or where they were paused. */
export const shownNowMs = computed(() => pausedMs.value ?? nowMs.value);

/** Holds the screen still, or goes on. */
export function togglePause(): void {
  const paused = pausedMs.value === null;
  pausedMs.value = paused ? nowMs.value : null;
  live.setPaused(paused);
}

/** Goes on, if the screen is held: another page starts with the present. */
export function goOn(): void {
  if (pausedMs.value !== null) togglePause();
}
