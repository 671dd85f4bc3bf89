/** A chart in words, for those who do not see it. Pure. */
import { bounds, withUnit } from "../lib/numbers";
import { clock, type Zone } from "../lib/time";
import { words } from "../messages.en";
import { type Line, lastKnown, type Plot } from "./plot";

const MOST_LINES = 5;

/** Returns one sentence: what is shown over which time, and where each line stands. */
export function describe(
  title: string,
  range: string,
  plot: Plot,
  unit: string,
  limits = "",
): string {
  const lines = plot.lines.filter((line) => !line.ghost).slice(0, MOST_LINES);
  const parts = lines.map((line) => standing(line, unit)).join("; ");
  const said = words.chart.sentence(title, range, parts || words.chart.unknown);
  return limits ? `${said}; ${limits}` : said;
}

function standing(line: Line, unit: string): string {
  const at = lastKnown(line);
  if (at < 0) return `${line.name}: ${words.chart.unknown}`;
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const v of line.value.subarray(0, line.drawn)) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return words.chart.lineSentence(
    line.name,
    withUnit(line.value[at], unit),
    withUnit(low, unit),
    withUnit(high, unit),
  );
}

/** Returns what the cursor stands on: time, state, and each line's value with its bounds. */
export function describeAt(plot: Plot, at: number, unit: string, zone: Zone): string {
  const tMs = plot.tMs[at];
  if (tMs === undefined) return words.chart.unknown;
  const values = plot.lines
    .filter((line) => !line.ghost && !Number.isNaN(line.value[at]))
    .slice(0, MOST_LINES)
    .map((line) => {
      const within = line.banded ? ` (${bounds(line.low[at] ?? 0, line.high[at] ?? 0, unit)})` : "";
      return `${line.name} ${withUnit(line.value[at], unit)}${within}`;
    });
  const state = stateAt(plot, at);
  return `${clock(tMs, zone, "second")}, ${state}: ${values.join(", ") || words.chart.unknown}`;
}

const WORST = ["n", "r", "i", "p", "f"];

/** Returns the worst state of any line at a window, as a word. */
export function stateAt(plot: Plot, at: number): string {
  const letters = plot.lines.filter((line) => !line.ghost).map((line) => line.state[at] ?? "n");
  const worst = WORST.find((letter) => letters.includes(letter)) ?? "f";
  return words.chart.states[worst] ?? "";
}
