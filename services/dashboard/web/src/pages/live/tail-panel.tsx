/** Events as they arrive, each with what became of it. */
import { useState } from "preact/hooks";
import { Copy } from "../../components/copy";
import { Icon } from "../../components/icon";
import { Empty, Refused } from "../../components/notes";
import { pausedMs } from "../../lib/pause";
import { may } from "../../lib/session";
import { clock, span } from "../../lib/time";
import { zone } from "../../lib/view";
import { fresh, nowMs } from "../../live/live";
import { fateOf, type Tail, type TailRow, tailRate, wholeOf } from "../../live/tail";
import type { TailEvent } from "../../live/wire";
import { words } from "../../messages.en";
import { emptyOf } from "./filter";
import type { FollowedTail } from "./use-tail";

const SHOWN = 40;
const NEW_MS = 1_000;

interface TailPanelProps {
  readonly tail: FollowedTail;
  /** All that arrives, whatever the filter. */
  readonly of: Tail;
  readonly held: boolean;
  readonly filter: string;
  onHold(held: boolean): void;
  onFilter(text: string): void;
}

/** The panel. */
export function TailPanel({ tail, of, held, filter, onHold, onFilter }: TailPanelProps) {
  const rate = tailRate(tail.newest, nowMs.value, of);
  const rows = tail.state.rows.slice(0, SHOWN);
  const [opened, setOpened] = useState<{ at: string; held: boolean } | null>(null);
  // What one reads must not move away: an open event holds the tail still.
  const toggle = (row: TailRow) => {
    const before = opened?.held ?? held;
    const closing = row.at === opened?.at;
    setOpened(closing ? null : { at: row.at, held: before });
    onHold(closing ? before : true);
  };
  return (
    <section class="panel tail" aria-label={words.live.arriving}>
      <header>
        <h2>{words.live.arriving}</h2>
        <span class="sub" data-testid="tail-rate">
          {words.live.rate(rate.shown, rate.of)}
        </span>
        <span class="grow" />
        <input
          class="field sm"
          type="search"
          data-testid="tail-filter"
          aria-label={words.live.filterLabel}
          placeholder={words.live.filter}
          title={words.live.filterHint}
          value={filter}
          onInput={(input) => {
            if (opened) onHold(opened.held);
            setOpened(null);
            onFilter(input.currentTarget.value);
          }}
        />
        <button
          type="button"
          class="btn sm"
          aria-pressed={held}
          data-testid="tail-pause"
          onClick={() => onHold(!held)}
        >
          <Icon name={held ? "play" : "pause"} small />
          {held ? words.pause.goOn : words.pause.pause}
        </button>
      </header>
      {tail.problem && <Refused problem={tail.problem} />}
      {!may("tail") && <p class="body t3">{words.live.tailScope}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <div class="tail-rows" role="log" aria-live="off" tabIndex={0} data-testid="tail">
        {rows.map((row) => (
          <Row key={row.at} row={row} open={row.at === opened?.at} onToggle={() => toggle(row)} />
        ))}
      </div>
      {rows.length === 0 && !tail.problem && (
        <NoRows filter={filter} held={held} newer={tail.newer} ofPerS={rate.of} />
      )}
      <footer>
        <Ages />
        <span class="grow" />
        <span>
          {held
            ? words.live.newer(tail.newer)
            : words.live.kept(rows.length, tail.state.rows.length)}
        </span>
      </footer>
    </section>
  );
}

function NoRows(why: Parameters<typeof emptyOf>[0]) {
  const [title, hint] = emptyOf(why);
  return (
    <Empty icon="live" title={title}>
      <span class="s">{hint}</span>
    </Empty>
  );
}

function Ages() {
  const told = fresh.value;
  const received = told?.received_ms ?? null;
  const counted = told?.processed_through_ms ?? null;
  return (
    <>
      {received !== null && <span>{words.live.received(span(nowMs.value - received))}</span>}
      {counted !== null && <span>{words.live.counted(span(nowMs.value - counted))}</span>}
    </>
  );
}

interface RowProps {
  readonly row: TailRow;
  readonly open: boolean;
  onToggle(): void;
}

function Row({ row, open, onToggle }: RowProps) {
  const { event } = row;
  const what = fateOf(row, countedMs());
  const said = whyOf(row);
  const isNew = nowMs.value - event.received_ms < NEW_MS;
  return (
    <div data-testid="tail-row" data-id={event.id} data-type={event.type} data-fate={what}>
      <button type="button" class={isNew ? "ev new" : "ev"} aria-expanded={open} onClick={onToggle}>
        <span class="t3">{clock(event.received_ms, zone.value, "tenth")}</span>
        <span class={said ? "ty warn" : "ty"} title={event.type}>
          {event.type || words.live.untyped}
        </span>
        <span class="mono data" title={event.data}>
          {said ?? event.data}
        </span>
        <span class={`fate ${what}`}>{words.live.fates[what] ?? what}</span>
      </button>
      {open && <Whole event={event} />}
    </div>
  );
}

/** Up to where everything is counted; a screen that is held shows what was known then. */
function countedMs(): number | null {
  const through = fresh.value?.processed_through_ms ?? null;
  return through === null ? null : Math.min(through, pausedMs.value ?? through);
}

/** The event with all that the tail has of it. */
function Whole({ event }: { event: TailEvent }) {
  const text = wholeOf(event);
  return (
    <section class="ev-whole" aria-label={words.live.open} data-testid="tail-whole">
      <Copy text={text} />
      {event.cut && <p class="t3 s">{words.live.cut}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre class="mono s" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}

/** Returns why an event, or a metric's use of it, was refused; null if all is well. */
export function whyOf({ event, fate }: TailRow): string | null {
  const reason = fate?.reason ?? event.reason;
  if (reason) return `${reason}: ${event.data}`;
  const refused = fate?.refused ?? [];
  if (refused.length === 0) return null;
  return `${refused.map((r) => `${r.metric}: ${r.code}`).join(", ")} · ${event.data}`;
}
