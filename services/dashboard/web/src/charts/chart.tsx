/** A time chart: a figure with lines, bands and states, a cursor for mouse and keys, a table. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Frame } from "../lib/limit";
import { themeTurns } from "../lib/palette";
import type { Zone } from "../lib/time";
import { words } from "../messages.en";
import { type Canvas, canvasOf } from "./canvas";
import { describe, describeAt } from "./describe";
import type { LimitLine, TimeSpan } from "./limits";
import type { Scene } from "./paint";
import type { Plot } from "./plot";
import { ChartTable } from "./table";
import { Tip } from "./tip";

export interface ChartProps {
  readonly title: string;
  readonly metric: string;
  readonly plot: Plot | null;
  readonly unit: string;
  readonly fromZero: boolean;
  readonly rangeMs: number;
  readonly rangeWords: string;
  /** Where time has got to, by the server's clock. */
  readonly nowMs: number;
  readonly staleMs: number | null;
  readonly staleText: string;
  readonly dimmed: boolean;
  readonly zone: Zone;
  readonly height: number;
  readonly asTable: boolean;
  /** Limits of rules, and when they fired. */
  readonly limits?: readonly LimitLine[];
  readonly firing?: readonly TimeSpan[];
  /** Values that the scale must hold beside the lines; what shows them is laid over the chart. */
  readonly inSight?: readonly number[];
  /** Whether the page names the lines, and uses the room beside them. */
  readonly namesApart?: boolean;
  /** Told where the values are, whenever that changes. */
  onFrame?(frame: Frame): void;
}

/** Draws a plot; shows its frame at once and its lines when they are there. */
export function Chart(props: ChartProps) {
  const { plot, title } = props;
  const told = (props.limits ?? []).map((one) => one.text).join(", ");
  const sentence = useMemo(
    () => (plot ? describe(title, props.rangeWords, plot, props.unit, told) : title),
    [plot, title, props.rangeWords, props.unit, told],
  );
  return (
    <figure class="chart" data-testid="chart" data-metric={props.metric} aria-label={sentence}>
      {props.asTable && plot ? (
        <ChartTable plot={plot} unit={props.unit} zone={props.zone} title={title} />
      ) : (
        <Drawn {...props} />
      )}
    </figure>
  );
}

function Drawn(props: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<Canvas | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const turns = themeTurns.value;
  const scene = sceneOf(props);
  const newest = useRef({ scene, props });
  newest.current = { scene, props };

  useLayoutEffect(() => {
    if (!host.current) return;
    const drawn = canvasOf(host.current, () => newest.current, setCursor);
    canvas.current = drawn;
    const sizes = new ResizeObserver(() => drawn.resize());
    sizes.observe(host.current);
    return () => {
      sizes.disconnect();
      drawn.destroy();
      canvas.current = null;
    };
  }, []);
  // colors are read anew when the theme turns
  useEffect(
    () => canvas.current?.update(),
    [
      props.plot,
      scene.toMs,
      scene.staleMs,
      props.zone,
      props.height,
      turns,
      JSON.stringify([scene.limits, scene.firing, props.inSight]),
    ],
  );
  const lines = props.plot?.lines ?? [];
  const known = cursor !== null && props.plot !== null && cursor < props.plot.tMs.length;
  return (
    <div class={props.dimmed ? "plot dimmed" : "plot"}>
      <div ref={host} class="plot-host" style={{ height: `${props.height}px` }} />
      {lines.length > 0 && props.plot && (
        <Cursor
          title={props.title}
          length={props.plot.tMs.length}
          at={cursor}
          onMove={(at) => canvas.current?.moveTo(at)}
          text={cursorText(props, cursor)}
        />
      )}
      {known && props.plot && (
        <Tip
          plot={props.plot}
          at={cursor}
          unit={props.unit}
          zone={props.zone}
          leftPx={canvas.current?.cursorPx() ?? 0}
          widthPx={host.current?.clientWidth ?? 0}
        />
      )}
    </div>
  );
}

interface CursorProps {
  readonly title: string;
  readonly length: number;
  readonly at: number | null;
  readonly text: string;
  onMove(at: number | null): void;
}

/** The chart's cursor for keys: arrows move a window, Home and End jump, Escape leaves. */
function Cursor({ title, length, at, text, onMove }: CursorProps) {
  const moved = (key: KeyboardEvent) => {
    const last = length - 1;
    const from = at ?? last;
    const steps: Readonly<Record<string, number | null>> = {
      ArrowLeft: Math.max(0, from - 1),
      ArrowRight: Math.min(last, from + 1),
      PageUp: Math.max(0, from - 10),
      PageDown: Math.min(last, from + 10),
      Home: 0,
      End: last,
      Escape: null,
    };
    if (!(key.key in steps)) return;
    key.preventDefault();
    key.stopPropagation();
    onMove(steps[key.key] ?? null);
  };
  return (
    <div
      class="plot-cursor"
      role="slider"
      tabIndex={0}
      aria-label={words.chart.cursor(title)}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, length - 1)}
      aria-valuenow={at ?? Math.max(0, length - 1)}
      aria-valuetext={text}
      onKeyDown={moved}
      onBlur={() => onMove(null)}
    />
  );
}

function cursorText(props: ChartProps, cursor: number | null): string {
  const { plot } = props;
  if (!plot) return words.chart.unknown;
  const at = cursor ?? plot.tMs.length - 1;
  return describeAt(plot, at, props.unit, props.zone);
}

function sceneOf(props: ChartProps): Scene {
  const plot = props.plot ?? NOTHING;
  // Whole pixels are enough: a chart of an hour is not repainted twice a second.
  const grainMs = Math.max(1_000, props.rangeMs / 800);
  const toMs = Math.ceil(props.nowMs / grainMs) * grainMs;
  return {
    plot,
    fromMs: toMs - props.rangeMs,
    toMs,
    unit: props.unit,
    staleMs: props.staleMs,
    staleText: props.staleText,
    labelled: plot.lines.length > 0 && !props.namesApart,
    limits: props.limits ?? [],
    firing: props.firing ?? [],
  };
}

const NOTHING: Plot = {
  tMs: new Float64Array(),
  lines: [],
  shown: 0,
  of: 0,
  unit: "",
  capped: false,
};

/** What the canvas reads when it paints: always the newest. */
export interface Newest {
  readonly scene: Scene;
  readonly props: ChartProps;
}
