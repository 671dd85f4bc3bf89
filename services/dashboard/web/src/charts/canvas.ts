/** The canvas of a chart: uPlot keeps scales, axes and the cursor, `paint.ts` paints. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { label } from "../lib/numbers";
import { color } from "../lib/palette";
import { clock, tickStep, ticks } from "../lib/time";
import type { Newest } from "./chart";
import { paintFiring, paintLimits, placeOf } from "./limits";
import { type Area, FONT, paintGrounds, paintLines } from "./paint";
import { lastKnown, marksOf, scaleOf } from "./plot";

const WIDE_PX = 480;
const X_AXIS_PX = 24;
const Y_AXIS_PX = 48;
const TOP_PX = 18;
const APART_PX = 88;

/** A chart on the page. */
export interface Canvas {
  update(): void;
  resize(): void;
  moveTo(at: number | null): void;
  cursorPx(): number;
  destroy(): void;
}

/** Puts a chart into an element; `newest` is read whenever it is painted. */
export function canvasOf(
  host: HTMLElement,
  newest: () => Newest,
  onCursor: (at: number | null) => void,
): Canvas {
  const size = () => ({
    width: Math.max(120, host.clientWidth),
    height: newest().props.height,
  });
  let lineCount = -1;
  let plot: uPlot | null = null;

  const build = () => {
    plot?.destroy();
    lineCount = newest().scene.plot.lines.length;
    plot = new uPlot(optionsOf({ ...size(), newest, onCursor }), dataOf(newest()), host);
    // The table view and the sentence say the same; a bare canvas says nothing.
    plot.root.setAttribute("aria-hidden", "true");
  };
  build();
  return {
    update() {
      if (newest().scene.plot.lines.length !== lineCount) build();
      else plot?.setData(dataOf(newest()), true);
    },
    resize() {
      const next = size();
      if (plot && (plot.width !== next.width || plot.height !== next.height)) build();
    },
    moveTo(at) {
      const times = newest().scene.plot.tMs;
      const t = at === null ? undefined : times[at];
      if (plot && t !== undefined) plot.setCursor({ left: plot.valToPos(t, "x"), top: 0 });
      else plot?.setCursor({ left: -10, top: -10 });
    },
    cursorPx: () => (plot ? (plot.cursor.left ?? 0) + plot.bbox.left / uPlot.pxRatio : 0),
    destroy: () => plot?.destroy(),
  };
}

function dataOf({ scene }: Newest): uPlot.AlignedData {
  const { plot } = scene;
  if (plot.lines.length === 0)
    return [
      [scene.fromMs, scene.toMs],
      [null, null],
    ];
  // uPlot knows gaps as null only.
  const columns = plot.lines.map((line) =>
    Array.from(line.value, (v, at) => (Number.isNaN(v) || at >= line.drawn ? null : v)),
  );
  return [Array.from(plot.tMs), ...columns];
}

interface Setup {
  readonly width: number;
  readonly height: number;
  readonly newest: () => Newest;
  readonly onCursor: (at: number | null) => void;
}

function optionsOf({ width, height, newest, onCursor }: Setup): uPlot.Options {
  const { plot } = newest().scene;
  const right = rightPad(width, newest());
  const scale = () => {
    const { scene, props } = newest();
    const most = scene.unit === "%" ? 100 : Number.POSITIVE_INFINITY;
    const also = [...scene.limits.map((one) => one.value), ...(props.inSight ?? [])];
    return scaleOf(scene.plot, props.fromZero, most, also);
  };
  return {
    width,
    height,
    ms: 1,
    padding: [TOP_PX, right, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      points: {
        size: 7,
        fill: (_, at) => color(tokenAt(newest(), at)),
        stroke: () => color("surface"),
      },
    },
    scales: {
      x: { time: true, range: () => [newest().scene.fromMs, newest().scene.toMs] },
      y: {
        range: () => {
          const { low, high } = scale();
          return [low, high];
        },
      },
    },
    axes: [xAxis(newest), yAxis(newest, scale)],
    series: [{}, ...Array.from({ length: Math.max(1, plot.lines.length) }, () => bare())],
    hooks: {
      drawClear: [
        (u) =>
          withPen(u, (pen, area) => {
            paintFiring(pen, area, newest().scene.firing);
            paintGrounds(pen, area, newest().scene);
          }),
      ],
      draw: [
        (u) =>
          withPen(u, (pen, area) => {
            baseline(pen, area);
            const { scene } = newest();
            const reserved = scene.limits.map((one) => placeOf(area, one));
            paintLines(pen, area, scene, reserved);
            paintLimits(pen, area, scene.limits);
            const { left, top, width, height } = area;
            const { low, high } = scale();
            newest().props.onFrame?.({ left, top, width, height, low, high });
          }),
      ],
      setCursor: [
        (u) => {
          const left = u.cursor.left ?? -1;
          onCursor(
            left >= 0 && newest().scene.plot.lines.length > 0 ? (u.cursor.idx ?? null) : null,
          );
        },
      ],
    },
  };
}

/** A series that only the cursor knows: we paint it ourselves. */
function bare(): uPlot.Series {
  return { paths: () => null, points: { show: false } };
}

function tokenAt({ scene }: Newest, series: number): string {
  return scene.plot.lines[series - 1]?.stroke.token ?? "accent";
}

/** Room at the right for the names of the lines. */
function rightPad(width: number, { scene, props }: Newest): number {
  if (props.namesApart) return APART_PX;
  const named = scene.plot.lines.filter((line) => !line.ghost && lastKnown(line) >= 0);
  const wide = width >= WIDE_PX;
  const longest = named.map((line) => {
    const value = wide ? label(line.value[lastKnown(line)], scene.unit).length + 1 : 0;
    return line.name.length + value;
  });
  const needed = 28 + Math.max(3, ...longest) * 7;
  return wide ? Math.min(170, Math.max(88, needed)) : Math.min(72, Math.max(56, needed));
}

function xAxis(newest: () => Newest): uPlot.Axis {
  return {
    size: X_AXIS_PX,
    font: FONT,
    stroke: () => color("text-3"),
    grid: { show: false },
    ticks: { show: false },
    gap: 8,
    splits: (u) => {
      const { scene, props } = newest();
      const across = u.bbox.width / uPlot.pxRatio;
      const step = tickStep(scene.toMs - scene.fromMs, across / 60);
      const edgeMs = ((scene.toMs - scene.fromMs) * 16) / across;
      return ticks(scene.fromMs + edgeMs, scene.toMs - edgeMs, step, props.zone);
    },
    values: (_, splits) => {
      const { props } = newest();
      const step = (splits[1] ?? 0) - (splits[0] ?? 0);
      const grain = step >= 86_400_000 ? "day" : step > 0 && step < 60_000 ? "second" : "minute";
      return splits.map((t) => clock(t, props.zone, grain));
    },
  };
}

function yAxis(newest: () => Newest, scale: () => ReturnType<typeof scaleOf>): uPlot.Axis {
  return {
    size: Y_AXIS_PX,
    font: FONT,
    stroke: () => color("text-3"),
    grid: { stroke: () => color("grid"), width: 1 },
    ticks: { show: false },
    gap: 8,
    splits: () => marksOf(scale()),
    values: (_, splits) => splits.map((v) => label(Number(v.toPrecision(12)), newest().scene.unit)),
  };
}

function baseline(pen: CanvasRenderingContext2D, area: Area): void {
  pen.strokeStyle = color("line-2");
  pen.lineWidth = 1;
  const y = Math.round(area.top + area.height) + 0.5;
  pen.beginPath();
  pen.moveTo(area.left, y);
  pen.lineTo(area.left + area.width, y);
  pen.stroke();
}

function withPen(u: uPlot, paint: (pen: CanvasRenderingContext2D, area: Area) => void): void {
  const ratio = uPlot.pxRatio;
  const { ctx, bbox } = u;
  ctx.save();
  ctx.scale(ratio, ratio);
  paint(ctx, {
    left: bbox.left / ratio,
    top: bbox.top / ratio,
    width: bbox.width / ratio,
    height: bbox.height / ratio,
    x: (tMs) => u.valToPos(tMs, "x", true) / ratio,
    y: (value) => u.valToPos(value, "y", true) / ratio,
  });
  ctx.restore();
}
