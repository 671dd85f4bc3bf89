/** The limits of rules on a chart: dashed lines, each with its sentence, and when it fired. */
import { color } from "../lib/palette";
import { type Area, FONT, halo, type Written } from "./paint";

/** A limit, or where a rule recovers. */
export interface LimitLine {
  readonly value: number;
  /** Its sentence, such as `fire above 400 ms`. */
  readonly text: string;
  readonly tone: "limit" | "recover";
  /** Whether its sentence stands below the line: what is beyond it is there. */
  readonly below?: boolean;
}

/** A span of time, `[from, to]` in instants. */
export type TimeSpan = readonly [fromMs: number, toMs: number];

type Pen = CanvasRenderingContext2D;

const BOLD = `600 ${FONT}`;
// From a line to the ground of what is written over it, or under it.
const OVER_PX = 5;
const UNDER_PX = 15;
const LETTER_PX = 7;

/** Paints the ground of the time in which something fired. */
export function paintFiring(pen: Pen, area: Area, spans: readonly TimeSpan[]): void {
  pen.fillStyle = color("bad-soft");
  for (const [fromMs, toMs] of spans) {
    const left = Math.max(area.left, area.x(fromMs));
    const right = Math.min(area.left + area.width, area.x(toMs));
    if (right > left) pen.fillRect(left, area.top, right - left, area.height);
  }
}

/** Paints limits over lines, sentences last. */
export function paintLimits(pen: Pen, area: Area, limits: readonly LimitLine[]): void {
  for (const one of limits) rule(pen, area, one);
  for (const one of limits) sentence(pen, area, one);
}

/** Returns about where the sentence of a limit stands. */
export function placeOf(area: Area, { value, text, tone, below }: LimitLine): Written {
  const y = area.y(value);
  const under = below ?? tone === "recover";
  // Beside the edge of the chart there is room on one side only.
  const fits = under ? y + 16 < area.top + area.height : y - 16 > area.top;
  const down = fits ? under : !under;
  const left = area.left + 6;
  return {
    left,
    right: left + LETTER_PX * text.length,
    y: down ? y + UNDER_PX : y - OVER_PX,
  };
}

function rule(pen: Pen, area: Area, { value, tone }: LimitLine): void {
  const y = Math.round(area.y(value)) + 0.5;
  pen.strokeStyle = color(tone === "limit" ? "bad" : "text-3");
  pen.lineWidth = tone === "limit" ? 1.5 : 1;
  pen.setLineDash(tone === "limit" ? [5, 3] : [2, 4]);
  pen.beginPath();
  pen.moveTo(area.left, y);
  pen.lineTo(area.left + area.width, y);
  pen.stroke();
  pen.setLineDash([]);
}

function sentence(pen: Pen, area: Area, one: LimitLine): void {
  const { left, y } = placeOf(area, one);
  pen.font = one.tone === "limit" ? BOLD : FONT;
  pen.textAlign = "left";
  halo(pen, one.text, left, y, one.tone === "limit" ? "bad" : "text-2");
}
