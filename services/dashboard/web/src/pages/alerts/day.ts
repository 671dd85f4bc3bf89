/** The last 24 hours of a rule: when any of its alerts fired. Pure. */
import type { Alert } from "../../api/shapes";

export const DAY_MS = 86_400_000;

/** A span of the strip, in shares of the day. */
export interface DayPiece {
  /** `unknown`: alerts that ended so long ago are no longer listed. */
  readonly kind: "firing" | "withdrawn" | "unknown";
  readonly from: number;
  readonly width: number;
}

export interface Day {
  readonly pieces: readonly DayPiece[];
  /** How many alerts fired and were not withdrawn. */
  readonly fired: number;
  /** For how long one of them or several fired. */
  readonly firingMs: number;
}

type Span = readonly [fromMs: number, toMs: number];

/**
 * Returns the day of a rule from its alerts.
 *
 * Args: `knownMs` is from when on all alerts are listed: the server lists the newest only.
 */
export function dayOf(alerts: readonly Alert[], knownMs: number, nowMs: number): Day {
  const beganMs = nowMs - DAY_MS;
  const spans = (withdrawn: boolean) =>
    alerts
      .filter((one) => (one.state === "withdrawn") === withdrawn)
      .map((one): Span => [Math.max(beganMs, one.since_ms), endOf(one, nowMs)])
      .filter(([fromMs, toMs]) => toMs > beganMs && toMs >= fromMs);
  const firing = spans(false);
  const joined = joinedOf(firing);
  const piece =
    (kind: DayPiece["kind"]) =>
    ([fromMs, toMs]: Span): DayPiece => ({
      kind,
      from: (fromMs - beganMs) / DAY_MS,
      width: (toMs - fromMs) / DAY_MS,
    });
  const unknown: readonly Span[] = knownMs > beganMs ? [[beganMs, Math.min(knownMs, nowMs)]] : [];
  return {
    pieces: [
      ...unknown.map(piece("unknown")),
      ...joinedOf(spans(true)).map(piece("withdrawn")),
      ...joined.map(piece("firing")),
    ],
    fired: firing.length,
    firingMs: joined.reduce((all, [fromMs, toMs]) => all + toMs - fromMs, 0),
  };
}

/** Returns from when on a list of the newest `most` alerts that ended is whole. */
export function knownFrom(ended: readonly Alert[], most: number): number {
  if (ended.length < most) return Number.NEGATIVE_INFINITY;
  return Math.min(...ended.map((one) => one.at_ms));
}

function endOf(alert: Alert, nowMs: number): number {
  const open = alert.state === "firing" || alert.state === "recovering";
  return open ? nowMs : Math.min(alert.at_ms, nowMs);
}

/** Joins spans that overlap: a rule fires while any of its series does. */
function joinedOf(spans: readonly Span[]): readonly Span[] {
  const found: Span[] = [];
  for (const [fromMs, toMs] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = found.at(-1);
    if (last && fromMs <= last[1]) found[found.length - 1] = [last[0], Math.max(last[1], toMs)];
    else found.push([fromMs, toMs]);
  }
  return found;
}
