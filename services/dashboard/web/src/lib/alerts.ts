/** Alerts and rules as every part of the screen reads them. */
import { computed, effect, untracked } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, problemOf } from "../api/client";
import type { Alert, Page, Rule } from "../api/shapes";
import { hasLost } from "../live/link";
import { live } from "../live/live";
import type { ServerFrame } from "../live/wire";
import { Reader, type Reading } from "./reader";
import { session } from "./session";
import { sickOf } from "./standing";

const lost = computed(() => hasLost(live.link.value));

/** Changes are told over the live connection; acknowledgements and health also end by time. */
const EVERY_MS = 5_000;
const GIVEN_UP_MS = 10_000;
/** The most that the server lists. */
export const MOST = 500;

function listed<T>(path: string): Reader<T> {
  return new Reader<T>({
    load: async () => (await get<Page<T>>(path, AbortSignal.timeout(GIVEN_UP_MS))).items,
    problemOf,
    ready: () => !document.hidden && !lost.value && (session.value?.signed_in ?? false),
    everyMs: EVERY_MS,
  });
}

/** What fires. */
export const openAlerts = listed<Alert>(`/alerts?state=open&limit=${MOST}`);
/** What ended, newest first. */
export const endedAlerts = listed<Alert>(`/alerts?state=ended&limit=${MOST}`);
/** All rules, each with where its series stand. */
export const rules = listed<Rule>("/rules");
/** All rules without their series: what charts and tiles watch, on each board that is open. */
export const chartRules = listed<Rule>("/rules?groups=0");

/** How many alerts fire; null before that is known. */
export const firingCount = computed(() => openAlerts.state.value.items?.length ?? null);

/** How many rules should be evaluated and are not; 0 before that is known. */
export const sickCount = computed(() => sickOf(chartRules.state.value.items ?? []).length);

/** Follows a list while the component is on the page. */
export function useReader<T>(list: Reader<T>): Reading<T> {
  useEffect(() => list.watch(), [list]);
  return list.state.value;
}

/** Starts reading for whoever signs in, when the server is back or a hidden tab looked at. */
export function startAlerts(): void {
  const all = [openAlerts, endedAlerts, rules, chartRules];
  const tick = () =>
    untracked(() => {
      for (const one of all) one.tick();
    });
  let before: string | null = null;
  let leave = () => {};
  effect(() => {
    const now = session.value?.signed_in ? (session.value.key_id ?? "") : null;
    if (now === before) return;
    before = now;
    untracked(() => {
      for (const one of all) one.forget();
      leave();
      leave = now === null ? () => {} : live.frames({ to: "alerts" }, onFrame);
    });
  });
  function onFrame(frame: ServerFrame) {
    if (frame.op !== "alerts") return;
    untracked(() => {
      for (const one of all) one.renew();
    });
  }
  effect(() => {
    if (!lost.value) tick();
  });
  document.addEventListener("visibilitychange", tick);
}
