/** What late events changed in a metric's final panes, the newest first. */
import { useLoad } from "../../api/load";
import type { Correction, LatenessTold, MetricDetail, Page } from "../../api/shapes";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { exact, integer, NONE, percent, short } from "../../lib/numbers";
import { clockOn, lengthWords, span } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { lateWords } from "../../messages.late.en";
import { nameOf, shareBeyond } from "./late";

const RELOAD_MS = 4_000;
const LATENESS_MS = 60_000;

/** The tab of a metric's page. */
export function CorrectionsTab({ metric }: { metric: MetricDetail }) {
  const path = `/corrections?metric=${encodeURIComponent(metric.name)}&limit=500`;
  const { body, problem, reload } = useLoad<Page<Correction>>(path, RELOAD_MS);
  return (
    <section class="panel size-L">
      <header>
        <h2>{lateWords.title}</h2>
        <span class="sub">{lateWords.sub(lengthWords(metric.lateness_ms))}</span>
      </header>
      <div class="body">
        <Allowed metric={metric} />
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {body?.items.length === 0 && (
        <Empty title={lateWords.none}>
          <span class="t3">{lateWords.noneHint}</span>
        </Empty>
      )}
      {body && body.items.length > 0 && <Rows items={body.items} />}
    </section>
  );
}

/** How much of what came would be late with what the metric allows. */
function Allowed({ metric }: { metric: MetricDetail }) {
  const { body } = useLoad<LatenessTold>("/lateness", LATENESS_MS);
  const found = body && shareBeyond(body.all, metric.lateness_ms);
  if (!found) return null;
  return (
    <p class="t3 s" data-testid="lateness-share">
      {lateWords.would(percent(found.share), lengthWords(found.than_ms))}
    </p>
  );
}

function Rows({ items }: { items: readonly Correction[] }) {
  const head = lateWords.head;
  return (
    <div class="body flush">
      <VirtualTable
        label={lateWords.title}
        tall
        rows={items}
        head={
          <tr>
            <th>{head.pane}</th>
            <th>{head.series}</th>
            <th class="num">{head.before}</th>
            <th class="num">{head.after}</th>
            <th class="num">{head.events}</th>
            <th class="num">{head.late}</th>
            <th>{head.sources}</th>
          </tr>
        }
        row={(one) => <Row key={`${one.seq}`} one={one} />}
      />
    </div>
  );
}

function Row({ one }: { one: Correction }) {
  const when = (ms: number) => clockOn(ms, nowMs.value, zone.value, "second");
  const from = when(one.t_ms - one.resolution_ms);
  return (
    <tr data-testid="correction-row">
      <td title={lengthWords(one.resolution_ms)}>{from}</td>
      <td class="mono s">{nameOf(one)}</td>
      <td class="num t3" title={one.was === null ? undefined : ends(one.was)}>
        {one.was === null ? NONE : figures(one.was)}
      </td>
      <td class="num b" title={one.now === null ? undefined : ends(one.now)}>
        {one.now === null ? lateWords.gone : figures(one.now)}
      </td>
      <td class="num">{`${one.events > 0 ? "+" : ""}${integer(one.events)}`}</td>
      <td class="num" title={lateWords.lateWhy(when(one.received_ms), when(one.final_ms))}>
        {span(one.late_ms)}
      </td>
      <td class="s" title={lateWords.upTo}>
        {one.sources.length === 0
          ? lateWords.unknown
          : one.sources.map(({ source }) => source).join(", ")}
      </td>
    </tr>
  );
}

type Figures = NonNullable<Correction["now"]>;

function figures(row: Figures): string {
  const sum = row.sum === null ? [] : [lateWords.figure("sum", exact(row.sum))];
  const told = Object.entries(row.estimates).map(([name, { value }]) =>
    lateWords.figure(name, short(value)),
  );
  return [integer(row.count), ...sum, ...told].join(", ");
}

/** Says between what each estimate lies. */
function ends(row: Figures): string {
  const told = Object.entries(row.estimates).map(([name, { value, low, high }]) =>
    lateWords.between(name, exact(value), exact(low), exact(high)),
  );
  return told.join("\n");
}
