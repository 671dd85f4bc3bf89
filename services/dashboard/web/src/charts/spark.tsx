/** The small line of a tile: shape, not reading; the tile says the number. */
import { useEffect, useRef } from "preact/hooks";
import { color, themeTurns } from "../lib/palette";
import type { Line, Plot } from "./plot";

const HEIGHT_PX = 40;
const PAD_PX = 3;

interface SparkProps {
  readonly plot: Plot;
  readonly fromMs: number;
  readonly toMs: number;
  readonly fromZero: boolean;
}

/** Draws the first line of a plot. */
export function Spark({ plot, fromMs, toMs, fromZero }: SparkProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const turns = themeTurns.value;
  // colors are read anew when the theme turns
  useEffect(() => {
    const host = canvas.current;
    if (!host) return;
    const draw = () => paint(host, { plot, fromMs, toMs, fromZero });
    draw();
    const sizes = new ResizeObserver(draw);
    sizes.observe(host);
    return () => sizes.disconnect();
  }, [plot, fromMs, toMs, fromZero, turns]);
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus, and the tile says the number
    <canvas ref={canvas} class="spark" aria-hidden="true" />
  );
}

function paint(host: HTMLCanvasElement, { plot, fromMs, toMs, fromZero }: SparkProps): void {
  const ratio = devicePixelRatio || 1;
  const width = host.clientWidth;
  if (host.width !== Math.round(width * ratio)) {
    host.width = Math.round(width * ratio);
    host.height = HEIGHT_PX * ratio;
  }
  const pen = host.getContext("2d");
  const line = plot.lines[0];
  if (!pen) return;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, HEIGHT_PX);
  if (!line) return;
  const [low, high] = ends(line, fromZero);
  const x = (tMs: number) => ((tMs - fromMs) / Math.max(1, toMs - fromMs)) * width;
  const y = (v: number) =>
    HEIGHT_PX - PAD_PX - ((v - low) / (high - low || 1)) * (HEIGHT_PX - 2 * PAD_PX - 2);
  hatchEnd(pen, plot, line, x, width);
  for (const run of runsOf(line)) paintRun(pen, plot, line, run, { x, y });
}

function ends(line: Line, fromZero: boolean): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const v of line.value.subarray(0, line.drawn)) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low > high) return [0, 1];
  if (fromZero && low < high * 0.5) low = Math.min(0, low);
  else low -= (high - low) * 0.15 || Math.abs(low) * 0.1 || 1;
  return [low, high];
}

function runsOf(line: Line): [number, number][] {
  const runs: [number, number][] = [];
  line.value.subarray(0, line.drawn).forEach((v, at) => {
    if (Number.isNaN(v)) return;
    const last = runs.at(-1);
    if (last && last[1] === at - 1) last[1] = at;
    else runs.push([at, at]);
  });
  return runs;
}

interface Axes {
  x(tMs: number): number;
  y(value: number): number;
}

function paintRun(
  pen: CanvasRenderingContext2D,
  plot: Plot,
  line: Line,
  [from, to]: [number, number],
  { x, y }: Axes,
): void {
  const at = (i: number): [number, number] => [x(plot.tMs[i] ?? 0), y(line.value[i] ?? 0)];
  pen.beginPath();
  pen.moveTo(at(from)[0], HEIGHT_PX);
  for (let i = from; i <= to; i += 1) pen.lineTo(...at(i));
  pen.lineTo(at(to)[0], HEIGHT_PX);
  pen.fillStyle = color("accent");
  pen.globalAlpha = 0.08;
  pen.fill();
  const open = line.state.indexOf("p", from);
  const split = open < 0 || open > to ? to : Math.max(from, open - 1);
  pen.strokeStyle = color("accent");
  pen.lineWidth = 1.5;
  pen.lineJoin = "round";
  for (const [a, b, alpha] of [
    [from, split, 1],
    [split, to, 0.5],
  ] as const) {
    if (a >= b) continue;
    pen.beginPath();
    for (let i = a; i <= b; i += 1) pen.lineTo(...at(i));
    pen.globalAlpha = alpha;
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function hatchEnd(
  pen: CanvasRenderingContext2D,
  plot: Plot,
  line: Line,
  x: (tMs: number) => number,
  width: number,
): void {
  const open = line.state.indexOf("p");
  if (open < 0) return;
  const left = Math.max(0, x(plot.tMs[Math.max(0, open - 1)] ?? 0));
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, width - left, HEIGHT_PX);
  pen.clip();
  pen.strokeStyle = color("hatch-c");
  pen.globalAlpha = 0.7;
  pen.beginPath();
  for (let at = Math.floor((left - HEIGHT_PX) / 5) * 5; at < width; at += 5) {
    pen.moveTo(at, HEIGHT_PX);
    pen.lineTo(at + HEIGHT_PX, 0);
  }
  pen.stroke();
  pen.restore();
}
