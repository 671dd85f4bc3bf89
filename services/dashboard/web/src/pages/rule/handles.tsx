/** Limits over a chart: lines that are dragged, moved by keys, and told as sliders. */
import { useRef } from "preact/hooks";
import { type Frame, movedBy, valueAt, yOf } from "../../lib/limit";
import { withUnit } from "../../lib/numbers";
import { ruleWords as words } from "../../messages.rules.en";

/** One limit that can be moved. */
export interface Handle {
  readonly end: "low" | "high";
  readonly value: number;
}

interface HandlesProps {
  readonly frame: Frame;
  readonly handles: readonly Handle[];
  /** Where it recovers. */
  readonly backs: readonly number[];
  readonly unit: string;
  readonly locked: boolean;
  onMove(end: Handle["end"], value: number): void;
  /** Told when a drag begins and ends: meanwhile the scale stays. */
  onDrag(drags: boolean): void;
}

/** The lines of all limits, and of where the rule recovers. */
export function Handles({ frame, handles, backs, unit, ...rest }: HandlesProps) {
  return (
    <>
      {backs.map((value) => (
        <Back key={value} frame={frame} value={value} unit={unit} handles={handles} />
      ))}
      {handles.map((handle) => (
        <Grip key={handle.end} frame={frame} handle={handle} unit={unit} {...rest} />
      ))}
    </>
  );
}

const PILL_PX = 24;

interface BackProps extends Pick<HandlesProps, "frame" | "unit" | "handles"> {
  readonly value: number;
}

/** A dotted line; its words make room for the limit's, which are larger. */
function Back({ frame, value, unit, handles }: BackProps) {
  const y = yOf(frame, value);
  const near = handles.map((one) => yOf(frame, one.value)).find((at) => Math.abs(at - y) < PILL_PX);
  const moved = near === undefined ? 0 : near + (y >= near ? PILL_PX : -PILL_PX) - y;
  return (
    <div class="limit-back" style={place(frame, y)}>
      <span
        class="limit-at"
        style={{ translate: `0 ${moved}px` }}
        title={words.chart.recovers(withUnit(value, unit))}
      >
        {withUnit(value, unit)}
      </span>
    </div>
  );
}

const place = (frame: Frame, y: number) => ({
  top: `${y}px`,
  left: `${frame.left}px`,
  width: `${frame.width}px`,
});

interface GripProps extends Omit<HandlesProps, "handles" | "backs"> {
  readonly handle: Handle;
}

function Grip({ frame, handle, unit, locked, onMove, onDrag }: GripProps) {
  const { end, value } = handle;
  const offset = useRef<number | null>(null);
  const y = yOf(frame, value);
  const heightOf = (pointer: PointerEvent) => {
    const chart = (pointer.currentTarget as HTMLElement).parentElement;
    return pointer.clientY - (chart?.getBoundingClientRect().top ?? 0);
  };
  const drop = () => {
    if (offset.current === null) return;
    offset.current = null;
    onDrag(false);
  };
  return (
    <div
      class="limit-grip"
      data-testid={`limit-handle-${end}`}
      role="slider"
      tabIndex={locked ? -1 : 0}
      aria-disabled={locked}
      aria-orientation="vertical"
      aria-label={words.chart.handle[end]}
      aria-valuemin={Math.min(frame.low, value)}
      aria-valuemax={Math.max(frame.high, value)}
      aria-valuenow={value}
      aria-valuetext={withUnit(value, unit)}
      style={place(frame, y)}
      onKeyDown={(key) => {
        const next = locked ? null : movedBy(key.key, value, frame);
        if (next === null) return;
        key.preventDefault();
        key.stopPropagation();
        onMove(end, next);
      }}
      onPointerDown={(pointer) => {
        if (locked || pointer.button !== 0) return;
        pointer.preventDefault();
        pointer.currentTarget.focus();
        pointer.currentTarget.setPointerCapture(pointer.pointerId);
        offset.current = heightOf(pointer) - y;
        onDrag(true);
      }}
      onPointerMove={(pointer) => {
        if (offset.current === null) return;
        const next = valueAt(frame, heightOf(pointer) - offset.current);
        if (next !== value) onMove(end, next);
      }}
      onPointerUp={drop}
      onPointerCancel={drop}
      onLostPointerCapture={drop}
    >
      <span class="limit-pill">
        <i aria-hidden="true" />
        {withUnit(value, unit)}
      </span>
    </div>
  );
}
