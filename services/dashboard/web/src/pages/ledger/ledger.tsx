/** The ledger: what became of every received event, minute by minute. */
import { useLoad } from "../../api/load";
import type { Ledger, LedgerMinute } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { integer } from "../../lib/numbers";
import { session } from "../../lib/session";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { ledgerWords } from "../../messages.ledger.en";
import { isBroken, verdictOf } from "./verdict";

const RELOAD_MS = 2_000;
const COLUMNS = ["counted", "duplicate", "quarantined", "beyond_horizon", "erased"] as const;

export default function LedgerPage() {
  useTitle(ledgerWords.title);
  const ready = session.value?.signed_in ?? false;
  const { body, problem, reload } = useLoad<Ledger>(ready ? "/ledger?limit=500" : null, RELOAD_MS);
  return (
    <>
      <div class="bar">
        <h1>{ledgerWords.title}</h1>
        <span class="sub">{ledgerWords.sub}</span>
        <span class="grow" />
        {body && body.items.length > 0 && <Verdict ledger={body} />}
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {body && body.items.length === 0 && <Empty title={ledgerWords.none} />}
      {body && body.items.length > 0 && <Minutes items={sorted(body.items)} />}
      {body && <Batches ledger={body} />}
    </>
  );
}

/** Minutes that do not balance come first: they are what one looks for. */
function sorted(items: readonly LedgerMinute[]): readonly LedgerMinute[] {
  const broken = (m: LedgerMinute) => Number(isBroken(m));
  return items
    .filter(saysSomething)
    .sort((a, b) => broken(b) - broken(a) || b.minute_ms - a.minute_ms);
}

/** Leaves out minutes of which nothing is known and in which nothing was counted. */
function saysSomething(minute: LedgerMinute): boolean {
  return minute.received !== null || COLUMNS.some((column) => minute[column] !== 0);
}

function Verdict({ ledger }: { ledger: Ledger }) {
  const { broken, balanced, says } = verdictOf(ledger.items);
  if (says === "broken") {
    return (
      <span class="state pill bad" data-testid="ledger-verdict">
        <Icon name="alert" />
        {ledgerWords.broken(broken)}
      </span>
    );
  }
  if (says === "nothing") {
    return (
      <span class="row t3 s" data-testid="ledger-verdict" title={ledgerWords.nothingWhy}>
        <Icon name="nodata" small />
        {ledgerWords.nothing}
      </span>
    );
  }
  return (
    <span class="badge-ok" data-testid="ledger-verdict">
      <Icon name="check" small />
      {ledgerWords.balances(balanced)}
    </span>
  );
}

function Minutes({ items }: { items: readonly LedgerMinute[] }) {
  const head = ledgerWords.head;
  return (
    <div class="panel">
      <VirtualTable
        label={ledgerWords.title}
        tall
        rows={items}
        head={
          <tr>
            <th>{head.minute}</th>
            <th class="num">{head.received}</th>
            {COLUMNS.map((column) => (
              <th key={column} class="num">
                {head[column]}
              </th>
            ))}
            <th class="num">{head.difference}</th>
          </tr>
        }
        row={(minute) => <Minute key={minute.minute_ms} minute={minute} />}
      />
    </div>
  );
}

function Minute({ minute }: { minute: LedgerMinute }) {
  const time = clockOn(minute.minute_ms, nowMs.value, zone.value);
  return (
    <tr
      data-testid="ledger-row"
      data-broken={isBroken(minute)}
      class={minute.open ? "t2" : undefined}
    >
      <td>{minute.open ? <span class="tag-prov">{time}</span> : time}</td>
      <td class="num" title={minute.received === null ? ledgerWords.unknownWhy : undefined}>
        {integer(minute.received)}
      </td>
      {COLUMNS.map((column) => (
        <td key={column} class="num">
          {integer(minute[column])}
        </td>
      ))}
      <Difference minute={minute} />
    </tr>
  );
}

function Difference({ minute }: { minute: LedgerMinute }) {
  if (minute.open) {
    const left = minute.difference;
    return <td class="num t3">{left ? ledgerWords.inFlight(integer(left)) : ledgerWords.open}</td>;
  }
  if (minute.difference === null) {
    return (
      <td class="num t3" title={ledgerWords.unknownWhy}>
        {ledgerWords.unknown}
      </td>
    );
  }
  if (minute.difference === 0) {
    return (
      <td class="num good">
        <span class="row end">
          0 <Icon name="check" small />
        </span>
      </td>
    );
  }
  return (
    <td class="num bad b">
      <span class="row end">
        {integer(minute.difference)} <Icon name="alert" small />
      </span>
    </td>
  );
}

function Batches({ ledger }: { ledger: Ledger }) {
  const { batches, events, ticks, difference } = ledger.batches;
  if (difference !== 0) {
    return <p class="bad b foot">{ledgerWords.batchesBroken(integer(difference))}</p>;
  }
  return (
    <p class="t3 s foot" data-testid="ledger-batches">
      {ledgerWords.batches(integer(batches), integer(events), integer(ticks))}
    </p>
  );
}
