/** What a metric did with every event that was counted, minute by minute. */
import { useLoad } from "../../api/load";
import type { MetricDetail, MetricLedger, MetricMinute, QuarantineSummary } from "../../api/shapes";
import { Empty, Note, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { integer, NONE } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { lateWords } from "../../messages.late.en";
import { type LeftOut, leftOutOf } from "./left-out";

const RELOAD_MS = 4_000;
const COLUMNS = ["counted", "used", "not_matched", "value_quarantined", "pane_not_kept"] as const;
const words = lateWords.ledger;

/** The tab of a metric's page. */
export default function LedgerTab({ metric }: { metric: MetricDetail }) {
  const name = encodeURIComponent(metric.name);
  const path = `/metrics/${name}/ledger`;
  const { body, problem, reload } = useLoad<MetricLedger>(path, RELOAD_MS);
  const items = body?.items.filter(({ counted }) => counted > 0) ?? [];
  // The quarantine is read on demand, from its end: once, and only where there is something in it.
  const anyRefused = items.some((minute) => minute.value_quarantined > 0);
  const quarantine = useLoad<QuarantineSummary>(
    anyRefused ? `/quarantine/summary?metric=${name}` : null,
  );
  const leftOut = body && leftOutOf(quarantine.body, body.version);
  return (
    <section class="panel size-L">
      <header>
        <h2>{words.title}</h2>
        <span class="sub">{words.sub}</span>
      </header>
      {problem && <Refused problem={problem} retry={reload} />}
      {quarantine.problem && <Refused problem={quarantine.problem} retry={quarantine.reload} />}
      {body && items.length === 0 && <Empty title={words.none} />}
      {leftOut && body && (
        <div class="body">
          <NotCopied leftOut={leftOut} version={body.version} />
        </div>
      )}
      {items.length > 0 && <Minutes items={items} />}
    </section>
  );
}

/** The list in quarantine is not the whole: how much more there was, and what counts it. */
function NotCopied({ leftOut, version }: { leftOut: LeftOut; version: number }) {
  const { missing, copies, parts, isPartial } = leftOut;
  return (
    <Note tone="warn" icon="alert">
      <div data-testid="not-copied">
        <b>{words.leftOut(integer(missing), integer(copies), version)}</b>
        <p class="t2">{words.leftOutDo}</p>
        <p class="t2 s">
          {parts.map((one) => words.leftOutIn(one.partition, integer(one.missing))).join(", ")}
        </p>
        {isPartial && <p class="t2 s">{words.leftOutAtLeast}</p>}
      </div>
    </Note>
  );
}

function Minutes({ items }: { items: readonly MetricMinute[] }) {
  return (
    <div class="body flush">
      <VirtualTable
        label={words.title}
        tall
        rows={items}
        head={
          <tr>
            <th>{words.head.minute}</th>
            {COLUMNS.map((column) => (
              <th key={column} class="num">
                {words.head[column]}
              </th>
            ))}
          </tr>
        }
        row={(minute) => <Minute key={minute.minute_ms} minute={minute} />}
      />
    </div>
  );
}

function Minute({ minute }: { minute: MetricMinute }) {
  const time = clockOn(minute.minute_ms, nowMs.value, zone.value);
  return (
    <tr data-testid="metric-ledger-row" class={minute.open ? "t2" : undefined}>
      <td>{minute.open ? <span class="tag-prov">{time}</span> : time}</td>
      {COLUMNS.map((column) => (
        <td key={column} class="num" title={minute[column] === null ? words.before : undefined}>
          {minute[column] === null ? NONE : integer(minute[column])}
        </td>
      ))}
    </tr>
  );
}
