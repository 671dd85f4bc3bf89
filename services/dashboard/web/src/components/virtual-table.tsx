/** A table that keeps only the rows in sight in the page, however many there are. */
import type { ComponentChildren, VNode } from "preact";
import { useRef, useState } from "preact/hooks";

const ROW_PX = 31;
const SPARE_ROWS = 8;
/** Up to here everything is in the page: find-in-page works and nothing jumps. */
const ALL_UP_TO = 100;

interface VirtualTableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly head: VNode;
  readonly row: (item: T) => ComponentChildren;
  readonly foot?: VNode | null;
  readonly tall?: boolean;
}

/** Shows rows; beyond a hundred only those that are scrolled to. */
export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { rows, label } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const virtual = rows.length > ALL_UP_TO;
  const height = box.current?.clientHeight ?? 320;
  const first = virtual ? Math.max(0, Math.floor(top / ROW_PX) - SPARE_ROWS) : 0;
  const shown = virtual ? Math.ceil(height / ROW_PX) + 2 * SPARE_ROWS : rows.length;
  const last = Math.min(rows.length, first + shown);
  return (
    <section
      ref={box}
      class={props.tall ? "scroll" : "scroll box"}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      onScroll={(scroll) => virtual && setTop(scroll.currentTarget.scrollTop)}
    >
      <table class="t" aria-rowcount={virtual ? rows.length + 1 : undefined}>
        <thead>{props.head}</thead>
        <tbody>
          <Space rows={first} />
          {rows.slice(first, last).map(props.row)}
          <Space rows={rows.length - last} />
        </tbody>
        {props.foot && <tfoot>{props.foot}</tfoot>}
      </table>
    </section>
  );
}

function Space({ rows }: { rows: number }) {
  if (rows === 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a spacer, which takes no focus
    <tr class="space" aria-hidden="true">
      <td style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}
