/** The page's one live client, wired to the browser, and the clock that ages are told by. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { LiveClient, type Wire } from "./client";
import { isDisconnected } from "./link";
import type { Fresh } from "./wire";

const CLOCK_MS = 500;
const SLOW_CLOCK_MS = 5_000;

let key: string | null = null;

/** Sets the API key to sign in with; null: the session's cookie. Never stored. */
export function useKey(text: string | null): void {
  key = text;
}

/** Returns the API key in use, if the page was signed in with one that must stay in memory. */
export function currentKey(): string | null {
  return key;
}

export const live = new LiveClient({
  open: (protocol) => {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    return new WebSocket(`${scheme}//${location.host}/api/v1/live`, protocol) as Wire;
  },
  nowMs: () => Date.now(),
  chance: () => Math.random(),
  onFrame: (draw) => requestAnimationFrame(draw),
  after: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  key: () => key,
});

const tick = signal(Date.now());

/** This machine's clock, twice a second. */
export const localNowMs: ReadonlySignal<number> = tick;

const offsetMs = computed(() => live.link.value.offsetMs);

/** The server's clock, twice a second: every age on screen is told by it. */
export const nowMs: ReadonlySignal<number> = computed(() => tick.value + offsetMs.value);

/** Whether this screen has lost the server. */
export const disconnected: ReadonlySignal<boolean> = computed(() =>
  isDisconnected(live.link.value, tick.value),
);

/** How old the numbers are, as the server last said. */
export const fresh: ReadonlySignal<Fresh | null> = computed(() => live.link.value.fresh);

/** Starts the connection and the clock. */
export function startLive(): void {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  live.setCalm(calm.matches);
  calm.addEventListener("change", () => live.setCalm(calm.matches));
  document.addEventListener("visibilitychange", () => live.setHidden(document.hidden));
  addEventListener("online", () => live.wake());
  live.start();
  let shownMs = 0;
  setInterval(() => {
    const now = Date.now();
    const everyMs = calm.matches ? SLOW_CLOCK_MS : CLOCK_MS;
    if (document.hidden || now - shownMs < everyMs - 50) return;
    shownMs = now;
    tick.value = now;
  }, CLOCK_MS);
}
