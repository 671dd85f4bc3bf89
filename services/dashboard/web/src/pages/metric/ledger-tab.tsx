/** What a metric did with every event that was counted, minute by minute. */
import { useLoad } from "../../api/load";
import type { MetricDetail, MetricLedger, MetricMinute } from "../../api/shapes";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { integer, NONE } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { lateWords } from "../../messages.late.en";

const RELOAD_MS = 4_000;
const COLUMNS = ["counted", "used", "not_matched", "value_quarantined", "pane_not_kept"] as const;
const words = lateWords.ledger;

/** The tab of a metric's page. */
export default function LedgerTab({ metric }: { metric: MetricDetail }) {
  const path = `/metrics/${encodeURIComponent(metric.name)}/ledger`;
  const { body, problem, reload } = useLoad<MetricLedger>(path, RELOAD_MS);
  const items = body?.items.filter(({ counted }) => counted > 0) ?? [];
  return (
    <section class="panel size-L">
      <header>
        <h2>{words.title}</h2>
        <span class="sub">{words.sub}</span>
      </header>
      {problem && <Refused problem={problem} retry={reload} />}
      {body && items.length === 0 && <Empty title={words.none} />}
      {items.length > 0 && <Minutes items={items} />}
    </section>
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
