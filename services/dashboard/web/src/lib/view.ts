/** What the address says about how a page is shown: range, zone, view, pause. */
import { computed } from "@preact/signals";
import { current, replaceParams } from "./router";
import { lengthOf, type Zone } from "./time";

export const RANGES = ["15m", "1h", "6h", "24h"] as const;
export type Range = (typeof RANGES)[number];
export const DEFAULT_RANGE: Range = "1h";

/** Words for a range, such as `this hour`. */
const RANGE_WORDS: Readonly<Record<Range, string>> = {
  "15m": "the last 15 minutes",
  "1h": "the last hour",
  "6h": "the last 6 hours",
  "24h": "the last 24 hours",
};

const isRange = (text: string): text is Range => (RANGES as readonly string[]).includes(text);

/** The range asked for, and what was asked instead if it is none. */
export const range = computed(() => {
  const asked = current.value.params.get("range") ?? DEFAULT_RANGE;
  const value = isRange(asked) ? asked : DEFAULT_RANGE;
  return {
    value,
    ms: lengthOf(value) ?? 3_600_000,
    words: RANGE_WORDS[value],
    unknown: isRange(asked) ? null : asked,
  };
});

/** The zone that times are told in. */
export const zone = computed<Zone>(() =>
  current.value.params.get("tz") === "utc" ? "utc" : "local",
);

/** Whether charts are shown as tables. */
export const asTable = computed(() => current.value.params.get("view") === "table");

export const setRange = (value: Range): void =>
  replaceParams({ range: value === DEFAULT_RANGE ? null : value });

export const setZone = (value: Zone): void =>
  replaceParams({ tz: value === "local" ? null : value });

export const toggleTable = (): void => replaceParams({ view: asTable.value ? null : "table" });

/** Moves to the next shorter or longer range. */
export function stepRange(by: 1 | -1): void {
  const at = RANGES.indexOf(range.value.value) + by;
  const next = RANGES[at];
  if (next) setRange(next);
}

/** Returns an address of this site that keeps zone and range. */
export function to(path: string): string {
  const kept = new URLSearchParams();
  for (const name of ["range", "tz"]) {
    const value = current.value.params.get(name);
    if (value !== null) kept.set(name, value);
  }
  const text = kept.toString();
  return text ? `${path}?${text}` : path;
}

/** Returns such an address that leads on to the dialog that puts a metric on a board. */
export function toPut(path: string): string {
  const address = to(path);
  return `${address}${address.includes("?") ? "&" : "?"}put=board`;
}

/** Whether the address asks for a metric on a board. */
export const putting = computed(() => current.value.params.get("put") === "board");
