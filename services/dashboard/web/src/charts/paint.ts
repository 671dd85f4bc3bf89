/** How a chart is painted on a canvas: grounds behind, bands, lines, corrections, labels. */

import { label } from "../lib/numbers";
import { color } from "../lib/palette";
import type { Correction } from "../live/wire";
import { words } from "../messages.en";
import { correctionWords, endsBefore } from "./corrected";
import type { LimitLine, TimeSpan } from "./limits";
import {
  type Line,
  lastKnown,
  lineBelow,
  type Plot,
  provisionalFrom,
  quietIn,
  spansIn,
} from "./plot";

/** Where things are on the canvas, in CSS pixels. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  x(tMs: number): number;
  y(value: number): number;
}

/** What is painted besides the lines. */
export interface Scene {
  readonly plot: Plot;
  readonly fromMs: number;
  readonly toMs: number;
  readonly unit: string;
  /** Since when nothing new is known; null while all is well. */
  readonly staleMs: number | null;
  readonly staleText: string;
  readonly labelled: boolean;
  readonly limits: readonly LimitLine[];
  /** When a rule fired. */
  readonly firing: readonly TimeSpan[];
}

type Pen = CanvasRenderingContext2D;

export const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const BOLD = `600 ${FONT}`;
const LABEL_PX = 15;

/** Paints what lies behind the lines: provisional, incomplete, rebuilding and unknown time. */
export function paintGrounds(pen: Pen, area: Area, scene: Scene): void {
  // Neutral: an answer does not tell time before the metric from a log that is gone.
  for (const [letter, text] of quietIn(scene.plot)) {
    for (const span of spansIn(scene.plot, letter)) {
      ground(pen, area, span, color("fill"));
      within(pen, area, span, text);
    }
  }
  const openMs = provisionalFrom(scene.plot);
  const endMs = scene.staleMs ?? scene.toMs;
  if (openMs !== null && openMs < endMs) {
    hatch(pen, area, Math.max(openMs, scene.fromMs), endMs);
    if (scene.staleMs === null) above(pen, area, words.chart.provisional);
  }
  if (scene.staleMs !== null && scene.staleMs < scene.toMs) {
    ground(pen, area, [scene.staleMs, scene.toMs], color("warn-soft"));
    above(pen, area, scene.staleText);
  }
}

function ground(pen: Pen, area: Area, [from, to]: readonly [number, number], fill: string): void {
  const left = Math.max(area.left, area.x(from));
  const right = Math.min(area.left + area.width, area.x(to));
  pen.fillStyle = fill;
  if (right > left) pen.fillRect(left, area.top, right - left, area.height);
}

/** Names a ground in its corner, where there is room for the word. */
function within(pen: Pen, area: Area, [from, to]: readonly [number, number], text: string): void {
  const left = Math.max(area.left, area.x(from));
  const right = Math.min(area.left + area.width, area.x(to));
  pen.font = FONT;
  if (pen.measureText(text).width + 12 > right - left) return;
  pen.fillStyle = color("text-2");
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.fillText(text, left + 6, area.top + 5);
}

function above(pen: Pen, area: Area, text: string): void {
  pen.font = FONT;
  pen.fillStyle = color("text-2");
  pen.textAlign = "right";
  pen.textBaseline = "alphabetic";
  pen.fillText(text, area.left + area.width, area.top - 5);
}

/** Fills a span with the diagonal lines that mean "may still change". */
function hatch(pen: Pen, area: Area, fromMs: number, toMs: number): void {
  const left = Math.max(area.left, area.x(fromMs));
  const right = Math.min(area.left + area.width, area.x(toMs));
  if (right - left < 1) return;
  pen.save();
  pen.beginPath();
  pen.rect(left, area.top, right - left, area.height);
  pen.clip();
  pen.strokeStyle = color("hatch-c");
  pen.globalAlpha = 0.7;
  pen.lineWidth = 1;
  pen.beginPath();
  // Fixed to the canvas, not to the span: the hatch must not swim as time goes on.
  for (let x = Math.floor((left - area.height) / 6) * 6; x < right; x += 6) {
    pen.moveTo(x, area.top + area.height);
    pen.lineTo(x + area.height, area.top);
  }
  pen.stroke();
  pen.restore();
}

/** Where words stand; `y` is their ground line. */
export interface Written {
  readonly left: number;
  readonly right: number;
  readonly y: number;
}

/**
 * Paints bands, lines, corrections and, at the right, what each line is called; words of
 * corrections leave room for what will be written over them.
 */
export function paintLines(pen: Pen, area: Area, scene: Scene, reserved: readonly Written[]): void {
  const { plot } = scene;
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top - 6, area.width, area.height + 7);
  pen.clip();
  pen.lineJoin = "round";
  for (const line of plot.lines) paintBand(pen, area, plot, line);
  for (const line of plot.lines) paintLine(pen, area, plot, line);
  const marked = plot.lines.flatMap((line) => paintCorrections(pen, area, plot, line));
  paintCorrectionWords(pen, area, marked, reserved);
  pen.restore();
  if (scene.labelled) paintLabels(pen, area, scene);
}

function paintBand(pen: Pen, area: Area, plot: Plot, line: Line): void {
  const below = lineBelow(plot, line);
  pen.fillStyle = color(line.stroke.token);
  pen.globalAlpha = 0.08;
  if (below) fillBetween(pen, area, plot, line.drawn, line.value, below.value);
  pen.globalAlpha = 0.18;
  if (line.banded) fillBetween(pen, area, plot, line.drawn, line.high, line.low);
  pen.globalAlpha = 1;
}

function fillBetween(
  pen: Pen,
  area: Area,
  plot: Plot,
  drawn: number,
  high: Float64Array,
  low: Float64Array,
): void {
  for (const [from, to] of runs(drawn, high, low)) {
    pen.beginPath();
    for (let at = from; at <= to; at += 1) pen.lineTo(area.x(t(plot, at)), area.y(v(high, at)));
    for (let at = to; at >= from; at -= 1) pen.lineTo(area.x(t(plot, at)), area.y(v(low, at)));
    pen.fill();
  }
}

const t = (plot: Plot, at: number) => plot.tMs[at] ?? 0;
const v = (column: Float64Array, at: number) => column[at] ?? Number.NaN;

/** Runs of windows in which all columns are known. */
function runs(length: number, ...columns: Float64Array[]): [number, number][] {
  const found: [number, number][] = [];
  for (let at = 0; at < length; at += 1) {
    if (columns.some((column) => Number.isNaN(column[at]))) continue;
    const last = found.at(-1);
    if (last && last[1] === at - 1) last[1] = at;
    else found.push([at, at]);
  }
  return found;
}

function paintLine(pen: Pen, area: Area, plot: Plot, line: Line): void {
  const ink = color(line.stroke.token);
  pen.strokeStyle = ink;
  pen.fillStyle = ink;
  pen.lineWidth = line.ghost ? 1.5 : 1.75;
  pen.setLineDash([...line.stroke.dash]);
  for (const [from, to] of runs(line.drawn, line.value)) {
    if (from === to) {
      dot(pen, area.x(t(plot, from)), area.y(v(line.value, from)));
      continue;
    }
    const open = line.state.indexOf("p", from);
    const split = open < 0 || open > to ? to : Math.max(from, open - 1);
    stroke(pen, area, plot, line, from, split);
    pen.globalAlpha = 0.5;
    stroke(pen, area, plot, line, split, to);
    pen.globalAlpha = 1;
  }
  pen.setLineDash([]);
}

function stroke(pen: Pen, area: Area, plot: Plot, line: Line, from: number, to: number): void {
  if (from >= to) return;
  pen.beginPath();
  for (let at = from; at <= to; at += 1) pen.lineTo(area.x(t(plot, at)), area.y(v(line.value, at)));
  pen.stroke();
}

function dot(pen: Pen, x: number, y: number): void {
  pen.beginPath();
  pen.arc(x, y, 2, 0, 2 * Math.PI);
  pen.fill();
}

/** Where a correction is marked. */
interface Marked {
  readonly one: Correction;
  readonly x: number;
  readonly y: number;
}

/** The least distance of the words of two corrections of a line, and of any two in height. */
const CORRECTION_PX = 150;
const WORDS_PX = 13;
const CROWDED_PX = 9;
/** Of more corrections in a chart only so many are told in words: the table has them all. */
const MOST_TOLD = 6;

/** Marks the corrections of a line; returns those that may be told in words. */
function paintCorrections(pen: Pen, area: Area, plot: Plot, line: Line): Marked[] {
  const marked: Marked[] = [];
  let labelled = Number.POSITIVE_INFINITY;
  // Side by side they would hide the line that they are about.
  const size = line.corrections.length * CROWDED_PX > area.width ? 2 : 5;
  // The newest first: of neighbours, such as sliding windows over one late event, it is told.
  for (const one of line.corrections) {
    if (one.is === null || one.t_ms < t(plot, 0)) continue;
    const x = area.x(one.t_ms);
    const y = area.y(one.is);
    pen.strokeStyle = color("fix");
    pen.lineWidth = 1.25;
    const ends = endsBefore(one);
    if (ends) whisker(pen, x, area.y(ends.low), area.y(ends.high));
    if (one.was !== null && size > 2) {
      const y0 = area.y(one.was);
      pen.beginPath();
      pen.moveTo(x, y0);
      pen.lineTo(x, y);
      pen.stroke();
      pen.beginPath();
      pen.arc(x, y0, 2.5, 0, 2 * Math.PI);
      pen.fillStyle = color("surface");
      pen.fill();
      pen.stroke();
    }
    diamond(pen, x, y, size);
    if (labelled - x < CORRECTION_PX) continue;
    labelled = x;
    marked.push({ one, x, y });
  }
  return marked;
}

/** Tells corrections in words, the newest first, where there is room for them. */
function paintCorrectionWords(
  pen: Pen,
  area: Area,
  marked: readonly Marked[],
  reserved: readonly Written[],
): void {
  const told = [...reserved];
  pen.font = BOLD;
  pen.textAlign = "right";
  for (const { one, x, y } of [...marked].sort((a, b) => b.x - a.x)) {
    if (told.length === reserved.length + MOST_TOLD) return;
    const text = correctionWords(one);
    const width = pen.measureText(text).width;
    const right = x - 9 - width < area.left ? x + 9 + width : x - 9;
    const box = { left: right - width, right, y: y - 8 };
    const overlaps = told.some(
      (other) =>
        other.left < box.right && box.left < other.right && Math.abs(other.y - box.y) < WORDS_PX,
    );
    if (overlaps || right > area.left + area.width) continue;
    told.push(box);
    halo(pen, text, box.right, box.y, "fix");
  }
}

/** Marks between what an estimate lay. */
function whisker(pen: Pen, x: number, low: number, high: number): void {
  pen.beginPath();
  pen.moveTo(x, low);
  pen.lineTo(x, high);
  for (const y of [low, high]) {
    pen.moveTo(x - 4, y);
    pen.lineTo(x + 4, y);
  }
  pen.stroke();
}

function diamond(pen: Pen, x: number, y: number, size: number): void {
  pen.beginPath();
  pen.moveTo(x, y - size);
  pen.lineTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.lineTo(x - size, y);
  pen.closePath();
  pen.fillStyle = color("fix");
  pen.fill();
  pen.strokeStyle = color("surface");
  pen.stroke();
}

/** Writes over lines, in the font and the alignment of the pen. */
export function halo(pen: Pen, text: string, x: number, y: number, token: string): void {
  pen.textBaseline = "alphabetic";
  pen.lineJoin = "round";
  pen.strokeStyle = color("surface");
  pen.lineWidth = 4;
  pen.strokeText(text, x, y);
  pen.fillStyle = color(token);
  pen.fillText(text, x, y);
}

interface Label {
  readonly line: Line;
  readonly text: string;
  y: number;
}

/** Names the lines at their ends; where they would overlap they move apart, newest value first. */
function paintLabels(pen: Pen, area: Area, scene: Scene): void {
  const room = Math.max(1, Math.floor(area.height / LABEL_PX));
  const labels = scene.plot.lines
    .filter((line) => !line.ghost)
    .map((line): Label | null => {
      const at = lastKnown(line);
      if (at < 0) return null;
      const value = v(line.value, at);
      return { line, text: label(value, scene.unit), y: area.y(value) };
    })
    .filter((end) => end !== null)
    .slice(0, room)
    .sort((a, b) => a.y - b.y);
  spreadOut(labels, area);
  const left = area.left + area.width + 6;
  const right = pen.canvas.clientWidth - 2;
  for (const one of labels) paintLabel(pen, one, left, right);
}

function spreadOut(labels: Label[], area: Area): void {
  for (let at = 1; at < labels.length; at += 1) {
    const before = labels[at - 1];
    const here = labels[at];
    if (before && here) here.y = Math.max(here.y, before.y + LABEL_PX);
  }
  let floor = area.top + area.height;
  for (const here of [...labels].reverse()) {
    here.y = Math.min(here.y, floor);
    floor = here.y - LABEL_PX;
  }
}

function paintLabel(pen: Pen, end: Label, left: number, right: number): void {
  pen.strokeStyle = color(end.line.stroke.token);
  pen.lineWidth = 2.25;
  pen.setLineDash([...end.line.stroke.dash]);
  pen.beginPath();
  pen.moveTo(left, end.y);
  pen.lineTo(left + 12, end.y);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = BOLD;
  pen.fillStyle = color("text");
  pen.textBaseline = "middle";
  const wide = right - left > 64;
  const value = wide ? end.text : "";
  const space = right - left - 16 - (value ? pen.measureText(value).width + 8 : 0);
  pen.textAlign = "left";
  pen.fillText(fitted(pen, end.line.name, space), left + 16, end.y + 0.5);
  pen.textAlign = "right";
  if (value) pen.fillText(value, right, end.y + 0.5);
}

function fitted(pen: Pen, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
