/** How old the numbers are: always in sight, as icon, words and color. */

import { percent } from "../lib/numbers";
import { clock, clockOn, span, type Zone } from "../lib/time";
import { zone } from "../lib/view";
import type { Link } from "../live/link";
import { disconnected, live, localNowMs, nowMs } from "../live/live";
import { words } from "../messages.en";
import { Icon, type IconName } from "./icon";

export type Tone = "live" | "stale" | "off" | "wait";

/** What the pill says. */
export interface Told {
  readonly tone: Tone;
  readonly state: string;
  readonly head: string;
  readonly rest: string;
  readonly hint: string;
}

/** Everything that the pill depends on. */
export interface Seen {
  readonly link: Link;
  readonly lost: boolean;
  readonly localMs: number;
  readonly serverMs: number;
  readonly zone: Zone;
  readonly pausedMs: number | null;
}

/** Returns what to say about freshness. Pure. */
export function freshnessOf(seen: Seen): Told {
  const said = words.fresh;
  const { link } = seen;
  if (link.phase === "denied") return told("off", "denied", said.denied, said.deniedHint);
  if (link.phase === "broken") {
    return told("off", "broken", said.broken, said.brokenHint(link.closeReason ?? ""));
  }
  if (seen.lost) return told("off", "disconnected", said.disconnected, retryWords(seen), said.lost);
  if (seen.pausedMs !== null) {
    return told("wait", "paused", said.paused, said.at(clock(seen.pausedMs, seen.zone, "second")));
  }
  if (link.fresh === null) return told("wait", "connecting", said.connecting, "");
  return judged(seen, link.fresh);
}

function judged(seen: Seen, fresh: NonNullable<Link["fresh"]>): Told {
  const said = words.fresh;
  const through = fresh.processed_through_ms;
  const ageMs = through === null ? null : seen.serverMs - through;
  const since = clockOn(fresh.since_ms ?? seen.serverMs, seen.serverMs, seen.zone, "second");
  const part = said.part(fresh.part);
  switch (fresh.status) {
    case "stale":
      return told("stale", "stale", said.stale, said.since(since), part);
    case "behind":
      return told("stale", "behind", said.behind(span(ageMs ?? 0)), said.catchingUp, part);
    case "rebuilding":
      return told("stale", "rebuilding", said.rebuilding, percent(fresh.progress ?? 0));
    default: {
      if (ageMs === null || through === null) {
        return told("wait", "live", said.live, said.waitingForFirst);
      }
      const received = fresh.received_ms === null ? "–" : span(seen.serverMs - fresh.received_ms);
      const hint = said.title(received, span(ageMs), clock(through, seen.zone, "tenth"));
      return told("live", "live", said.live, said.counted(span(ageMs)), hint);
    }
  }
}

function told(tone: Tone, state: string, head: string, rest: string, hint = ""): Told {
  return { tone, state, head, rest, hint };
}

function retryWords({ link, localMs }: Seen): string {
  if (link.phase !== "waiting" || link.retryAtMs === null) return words.fresh.retrying;
  const waitMs = Math.max(0, link.retryAtMs - localMs);
  return words.fresh.retryIn(`${Math.ceil(waitMs / 1_000)} s`);
}

const ICONS: Readonly<Record<Tone, IconName | null>> = {
  live: null,
  wait: null,
  stale: "stale",
  off: "off",
};

/** What is told now; read it where a whole page depends on it. */
export function freshNow(pausedMs: number | null): Told {
  return freshnessOf({
    link: live.link.value,
    lost: disconnected.value,
    localMs: localNowMs.value,
    serverMs: nowMs.value,
    zone: zone.value,
    pausedMs,
  });
}

/** The pill in the header. */
export function FreshnessPill({ pausedMs }: { pausedMs: number | null }) {
  const told = freshNow(pausedMs);
  const icon = ICONS[told.tone];
  return (
    <span
      class={`fresh ${told.tone}`}
      title={told.hint}
      data-testid="live-pill"
      data-state={told.state}
    >
      {icon ? <Icon name={icon} small /> : <span class="dot" />}
      <b>{told.head}</b> <span class="rest">{told.rest}</span>
    </span>
  );
}
