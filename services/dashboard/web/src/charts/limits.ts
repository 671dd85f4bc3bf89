/** The limits of rules on a chart: dashed lines, each with its sentence, and when it fired. */
import { color } from "../lib/palette";
import { type Area, FONT, type Written } from "./paint";

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
const GAP_PX = 5;
const EDGE_PX = 6;
const TEXT_PX = 11;

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

/** Returns where the sentences of limits will stand. */
export function sentencesOf(
  pen: Pen,
  area: Area,
  limits: readonly LimitLine[],
): readonly Written[] {
  return limits.map((one) => {
    const { y, down } = placeOf(area, one);
    pen.font = fontOf(one);
    const left = area.left + EDGE_PX;
    return { left, right: left + pen.measureText(one.text).width, y: down ? y + TEXT_PX : y };
  });
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

/** Returns where the sentence of a limit stands: hanging from there, or on it. */
function placeOf(area: Area, { value, tone, below }: LimitLine): { y: number; down: boolean } {
  const y = area.y(value);
  const under = below ?? tone === "recover";
  // Beside the edge of the chart there is room on one side only.
  const fits = under ? y + 16 < area.top + area.height : y - 16 > area.top;
  const down = fits ? under : !under;
  return { y: down ? y + GAP_PX : y - GAP_PX, down };
}

function fontOf({ tone }: LimitLine): string {
  return tone === "limit" ? BOLD : FONT;
}

function sentence(pen: Pen, area: Area, one: LimitLine): void {
  const { y, down } = placeOf(area, one);
  pen.font = fontOf(one);
  pen.textAlign = "left";
  pen.textBaseline = down ? "top" : "alphabetic";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = color("surface");
  pen.strokeText(one.text, area.left + EDGE_PX, y);
  pen.fillStyle = color(one.tone === "limit" ? "bad" : "text-2");
  pen.fillText(one.text, area.left + EDGE_PX, y);
}
