/**
 * The connection as a state machine: when to connect, when to give up on silence, when
 * to try again. Pure: time and chance come in, effects go out; `socket.ts` performs them.
 */
import type { Fresh, ServerFrame } from "./wire";

export const SILENCE_MS = 6_000;
export const FIRST_RETRY_MS = 500;
export const MAX_RETRY_MS = 30_000;
const FLOODED_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** Closes after which trying again would only repeat a mistake of this client. */
const BUGS = new Set([1007, 1009, 4400, 4413]);

export type Phase =
  /** Nobody has started it. */
  | "idle"
  /** A socket is being opened, or opened and not yet welcomed. */
  | "connecting"
  /** Welcomed: frames flow. */
  | "open"
  /** Closed; another attempt at `retryAtMs`. */
  | "waiting"
  /** The credential does not count (any more): sign in. */
  | "denied"
  /** Closed for a mistake of ours: no further attempt. */
  | "broken";

/** Everything known about the connection; instants by this machine's clock. */
export interface Link {
  readonly phase: Phase;
  readonly attempt: number;
  readonly sinceMs: number;
  readonly lastFrameMs: number | null;
  readonly retryAtMs: number | null;
  /** Server's clock minus ours. */
  readonly offsetMs: number;
  readonly fresh: Fresh | null;
  readonly scopes: readonly string[];
  readonly maxHz: number;
  readonly closeReason: string | null;
  /** What the server asked us to wait when it said good-bye. */
  readonly afterMs: number | null;
}

export const IDLE: Link = {
  phase: "idle",
  attempt: 0,
  sinceMs: 0,
  lastFrameMs: null,
  retryAtMs: null,
  offsetMs: 0,
  fresh: null,
  scopes: [],
  maxHz: 4,
  closeReason: null,
  afterMs: null,
};

export type Happening =
  | { readonly type: "start" }
  | { readonly type: "opened" }
  | { readonly type: "frame"; readonly frame: ServerFrame }
  | { readonly type: "closed"; readonly code: number; readonly reason: string }
  | { readonly type: "tick" }
  /** The tab became visible or the network came back: do not wait any longer. */
  | { readonly type: "wake" };

export type Effect = "connect" | "hello" | "resubscribe" | "close";

/** When it happens, and a number in [0, 1) that spreads the retries of many screens. */
export interface Moment {
  readonly nowMs: number;
  readonly chance: number;
}

export interface LinkStep {
  readonly link: Link;
  readonly effects: readonly Effect[];
}

const stay = (link: Link): LinkStep => ({ link, effects: [] });

/** Returns the link after something happened, and what to do about it. */
export function linkAfter(link: Link, what: Happening, at: Moment): LinkStep {
  switch (what.type) {
    case "start":
      return connecting(link, at.nowMs);
    case "opened":
      return link.phase === "connecting" ? { link, effects: ["hello"] } : stay(link);
    case "frame":
      return framed(link, what.frame, at.nowMs);
    case "closed":
      return closed(link, what.code, what.reason, at);
    case "tick":
      return ticked(link, at);
    case "wake":
      return link.phase === "waiting" ? connecting(link, at.nowMs) : stay(link);
  }
}

function connecting(link: Link, nowMs: number): LinkStep {
  if (link.phase === "connecting" || link.phase === "open") return stay(link);
  const next: Link = { ...link, phase: "connecting", sinceMs: nowMs, retryAtMs: null };
  return { link: next, effects: ["connect"] };
}

function framed(link: Link, frame: ServerFrame, nowMs: number): LinkStep {
  const heard: Link = { ...link, lastFrameMs: nowMs };
  switch (frame.op) {
    case "welcome":
      return {
        link: {
          ...heard,
          phase: "open",
          sinceMs: nowMs,
          offsetMs: frame.now_ms - nowMs,
          scopes: frame.scopes,
          maxHz: frame.limits.hz,
          closeReason: null,
          afterMs: null,
        },
        effects: ["resubscribe"],
      };
    case "heartbeat":
      // The first heartbeat proves the connection: only then do retries start small again.
      return stay({ ...heard, attempt: 0, offsetMs: frame.now_ms - nowMs, fresh: frame.fresh });
    case "goodbye":
      return stay({ ...heard, afterMs: frame.after_ms, closeReason: frame.reason });
    default:
      return stay(heard);
  }
}

function closed(link: Link, code: number, reason: string, at: Moment): LinkStep {
  if (link.phase === "waiting" || link.phase === "denied" || link.phase === "broken") {
    return stay(link);
  }
  const why = reason || link.closeReason;
  const ended: Link = { ...link, sinceMs: at.nowMs, closeReason: why, afterMs: null };
  if (code === 4401) return stay({ ...ended, phase: "denied", retryAtMs: null });
  if (BUGS.has(code)) return stay({ ...ended, phase: "broken", retryAtMs: null });
  const waitMs = waitAfter(code, link, at.chance);
  const maxHz = code === 4408 ? Math.max(0.25, link.maxHz / 2) : link.maxHz;
  return stay({
    ...ended,
    phase: "waiting",
    attempt: link.attempt + 1,
    retryAtMs: at.nowMs + waitMs,
    maxHz,
  });
}

/** Returns how long to wait: doubling with full jitter, so that screens do not return at once. */
export function waitAfter(code: number, link: Link, chance: number): number {
  if (link.afterMs !== null) return link.afterMs;
  const ceiling = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** link.attempt);
  const waitMs = ceiling * chance;
  return code === 4429 ? FLOODED_MS + waitMs : waitMs;
}

function ticked(link: Link, at: Moment): LinkStep {
  if (link.phase === "waiting" && at.nowMs >= (link.retryAtMs ?? 0)) {
    return connecting(link, at.nowMs);
  }
  const heardMs = Math.max(link.lastFrameMs ?? 0, link.sinceMs);
  const silentMs = at.nowMs - heardMs;
  const lost =
    (link.phase === "open" && silentMs >= SILENCE_MS) ||
    (link.phase === "connecting" && silentMs >= CONNECT_TIMEOUT_MS);
  if (!lost) return stay(link);
  const { link: next } = closed(link, 1006, "", at);
  return { link: next, effects: ["close"] };
}

/**
 * Tells whether the server was there and is not now: asking it in other ways is in vain
 * until it is heard again. Before the first word it is not known, so one may ask; and a
 * server that closed for good, denied or broken, is there.
 */
export function hasLost(link: Link): boolean {
  return link.lastFrameMs !== null && (link.phase === "waiting" || link.phase === "connecting");
}

/** Tells whether this screen has heard nothing for too long: everything on it is old. */
export function isDisconnected(link: Link, nowMs: number): boolean {
  if (link.phase === "denied" || link.phase === "broken") return true;
  return link.lastFrameMs !== null && nowMs - link.lastFrameMs >= SILENCE_MS;
}
