/** Instants and spans as people read them. Instants are epoch milliseconds, UTC. */

export type Zone = "local" | "utc";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How finely a clock time is told. */
export type Grain = "minute" | "second" | "tenth" | "day";

const formats = new Map<string, Intl.DateTimeFormat>();

const PARTS: Record<Grain, Intl.DateTimeFormatOptions> = {
  day: { month: "short", day: "numeric" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  second: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  tenth: {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 2,
    hourCycle: "h23",
  },
};

function format(zone: Zone, grain: Grain): Intl.DateTimeFormat {
  const id = `${zone} ${grain}`;
  let found = formats.get(id);
  if (!found) {
    const options = zone === "utc" ? { ...PARTS[grain], timeZone: "UTC" } : PARTS[grain];
    found = new Intl.DateTimeFormat("en-GB", options);
    formats.set(id, found);
  }
  return found;
}

/** Returns a clock time, such as `14:32:06`. */
export function clock(ms: number, zone: Zone, grain: Grain = "minute"): string {
  return format(zone, grain).format(ms);
}

/** Returns a clock time, with the day where it is another one than today's. */
export function clockOn(ms: number, nowMs: number, zone: Zone, grain: Grain = "minute"): string {
  const text = clock(ms, zone, grain);
  const day = clock(ms, zone, "day");
  return day === clock(nowMs, zone, "day") ? text : `${day} ${text}`;
}

/** Returns what a zone is called at an instant, such as `CET` or `UTC`. */
export function zoneName(zone: Zone, atMs: number): string {
  if (zone === "utc") return "UTC";
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(atMs);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "local";
}

/** Returns an instant with its offset, as exports need it. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns a length of time in words, such as `0.4 s`, `44 s`, `3 min`, `2 h 5 min`. */
export function span(ms: number): string {
  const length = Math.max(0, ms);
  if (length < 9_950) return `${(length / SECOND).toFixed(1)} s`;
  if (length < 100 * SECOND) return `${Math.round(length / SECOND)} s`;
  if (length < 100 * MINUTE) return `${Math.round(length / MINUTE)} min`;
  const hours = Math.floor(length / HOUR);
  const minutes = Math.round((length - hours * HOUR) / MINUTE);
  if (length < 2 * DAY) return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  return `${Math.round(length / DAY)} d`;
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  w: 7 * DAY,
};

/** Returns the length in a text such as `15m`, `90s`, `2m30s`; null if it is none. */
export function lengthOf(text: string): number | null {
  if (!/^(\d+(ms|[smhdw]))+$/.test(text)) return null;
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|[smhdw])/g)) {
    sum += Number(count) * (UNITS[unit ?? ""] ?? 0);
  }
  return sum > 0 ? sum : null;
}

/** Returns a length as definitions and queries write it, such as `30s`, `5m`. */
export function lengthText(ms: number): string {
  for (const unit of ["w", "d", "h", "m", "s"]) {
    const size = UNITS[unit] ?? 1;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

/** Returns a length as screens write it, such as `30 s`, `5 m`. */
export function lengthWords(ms: number): string {
  return lengthText(ms).replace(/^(\d+)/, "$1 ");
}

const TICKS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200,
  86_400,
].map((s) => s * SECOND);

/** Returns a step of round clock times that puts at most `most` marks on a span. */
export function tickStep(spanMs: number, most: number): number {
  return TICKS.find((step) => spanMs / step <= Math.max(1, most)) ?? DAY;
}

/** Returns the round clock times of a span, in the zone that they are told in. */
export function ticks(fromMs: number, toMs: number, stepMs: number, zone: Zone): number[] {
  const shiftMs = zone === "utc" ? 0 : -new Date(toMs).getTimezoneOffset() * MINUTE;
  const found: number[] = [];
  const first = Math.ceil((fromMs + shiftMs) / stepMs) * stepMs - shiftMs;
  for (let t = first; t <= toMs; t += stepMs) found.push(t);
  return found;
}
