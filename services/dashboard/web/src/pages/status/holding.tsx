/** What holds the numbers back, what the log is about to lose, and how late sources are. */
import { useLateness } from "../../api/lateness";
import type { LatenessTold, SourceLateness, Status } from "../../api/shapes";
import { Note, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { DAY_HOURS, hoursOf, lengthsSeen, shareBeyond } from "../../lib/lateness";
import { integer, NONE, percent } from "../../lib/numbers";
import { lengthWords, span } from "../../lib/time";
import { lateWords } from "../../messages.late.en";

const RELOAD_MS = 30_000;
const words = lateWords.status;
const said = lateWords.sources;

/** The reason in words, and how long the log still holds. */
export function Holding({ status }: { status: Status }) {
  const { dedup_gap: gap, holding, lag, log, quarantine } = status;
  const calm = holding === null || holding.code === "quiet";
  return (
    <>
      {log.warning !== null && (
        <Note tone="bad" icon="alert">
          <span data-testid="log-warning">{log.warning}</span>
        </Note>
      )}
      {quarantine.warning !== null && (
        <Note tone="warn" icon="alert">
          <span data-testid="quarantine-warning">{quarantine.warning}</span>
        </Note>
      )}
      {gap !== null && (
        <Note tone="warn" icon="alert">
          <span data-testid="dedup-gap">
            {words.dedupGap(
              gap.partitions_before,
              gap.partitions,
              span(gap.until_ms - status.now_ms),
            )}
          </span>
        </Note>
      )}
      <section class="panel" data-testid="holding" data-code={holding?.code ?? ""}>
        <header>
          <h2>{words.holding}</h2>
        </header>
        <div class="body">
          <p class={calm ? "t2" : "b"}>{holding?.message ?? words.nothing}</p>
          {lag.records !== null && lag.ms !== null && (
            <p class="t3 s">{words.lag(integer(lag.records), span(lag.ms))}</p>
          )}
          <p class="t3 s">{logText(log)}</p>
        </div>
      </section>
    </>
  );
}

/** Returns for how long the log holds what is not counted; that nobody knows is no all-clear. */
function logText(log: Status["log"]): string {
  const { left_ms: left, kept_ms: kept, oldest_ms: oldest } = log;
  if (left !== null) return words.log(span(left), kept === null ? null : span(kept));
  if (log.warning === null && (kept !== null || oldest !== null)) return words.forEver;
  return words.logUnknown;
}

/** How late each source's events were in the last day. */
export function Sources() {
  const { body, problem, reload } = useLateness(null, RELOAD_MS);
  if (body === null && problem === null) return null;
  const last = lateWords.last(body ? hoursOf(body) : DAY_HOURS);
  return (
    <section class="panel" data-testid="lateness" data-old={body !== null && problem !== null}>
      <header>
        <h2>{said.title}</h2>
        <span class="sub">{said.sub(last)}</span>
      </header>
      {problem && (
        <div class="body stack">
          <Refused problem={problem} retry={reload} aside />
          {body && <b class="s">{said.earlier}</b>}
        </div>
      )}
      {body && (
        <div class={problem ? "dimmed" : undefined}>
          <BySource told={body} last={last} />
        </div>
      )}
    </section>
  );
}

function BySource({ told, last }: { told: LatenessTold; last: string }) {
  if (told.all.events === 0) {
    return (
      <div class="body">
        <p class="t3">{said.none(last)}</p>
      </div>
    );
  }
  const lengths = lengthsSeen(told.all);
  return (
    <VirtualTable
      label={said.title}
      rows={[...told.sources, told.all]}
      head={
        <tr>
          <th>{said.head.source}</th>
          <th class="num">{said.head.events}</th>
          <th class="num">{said.head.p50}</th>
          <th class="num">{said.head.p99}</th>
          <th class="num">{said.head.max}</th>
          {lengths.map((ms) => (
            <th key={ms} class="num" title={said.why}>
              {said.later(lengthWords(ms))}
            </th>
          ))}
        </tr>
      }
      row={(one) => <Source key={one.source ?? ""} one={one} lengths={lengths} />}
    />
  );
}

interface SourceProps {
  readonly one: SourceLateness;
  /** The lengths of which it is told how many came later. */
  readonly lengths: readonly number[];
}

function Source({ one, lengths }: SourceProps) {
  const within = (ms: number | null) => {
    if (one.events === 0) return NONE;
    return ms === null ? said.over : lengthWords(ms);
  };
  return (
    <tr data-testid="lateness-row">
      <td class={one.source === null ? "b" : "mono"}>{one.source ?? said.all}</td>
      <td class="num">{integer(one.events)}</td>
      <td class="num">{within(one.p50_ms)}</td>
      <td class="num">{within(one.p99_ms)}</td>
      <td class="num">{within(one.max_ms)}</td>
      {lengths.map((ms) => (
        <td key={ms} class="num">
          {percent(shareBeyond(one, ms)?.share ?? 0)}
        </td>
      ))}
    </tr>
  );
}
