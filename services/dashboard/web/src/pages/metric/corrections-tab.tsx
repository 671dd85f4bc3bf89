/** What late events changed in a metric's final panes, the newest first. */
import { useLateness } from "../../api/lateness";
import { useLoad } from "../../api/load";
import type { Correction, MetricDetail, Page } from "../../api/shapes";
import { LatenessSaid } from "../../components/allowed-lateness";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { exact, fine, integer, short } from "../../lib/numbers";
import { clockOn, lengthWords, span } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { lateWords } from "../../messages.late.en";
import { type Figure, figureNames, figureOf, hasTexts, nameOf, sourcesOf, textsOf } from "./late";

const RELOAD_MS = 4_000;
const LATENESS_MS = 60_000;

/** The tab of a metric's page. */
export default function CorrectionsTab({ metric }: { metric: MetricDetail }) {
  const path = `/corrections?metric=${encodeURIComponent(metric.name)}&limit=500`;
  const { body, problem, reload } = useLoad<Page<Correction>>(path, RELOAD_MS);
  return (
    <section class="panel size-L" data-testid="corrections">
      <header>
        <h2>{lateWords.title}</h2>
        <span class="sub">{lateWords.sub(lengthWords(metric.lateness_ms))}</span>
      </header>
      <div class="body stack">
        <Allowed metric={metric} />
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {body?.items.length === 0 && (
        <Empty title={lateWords.none}>
          <span class="t3">{lateWords.noneHint}</span>
        </Empty>
      )}
      {body && body.items.length > 0 && <Rows metric={metric} items={body.items} />}
    </section>
  );
}

/** How much of what came would be late with what the metric allows. */
function Allowed({ metric }: { metric: MetricDetail }) {
  const { body, problem, reload } = useLateness(metric.name, LATENESS_MS);
  return (
    <>
      {problem && <Refused problem={problem} retry={reload} aside />}
      {body && <LatenessSaid told={body} old={problem && lateWords.allowed.ofEarlier} />}
    </>
  );
}

function Rows({ metric, items }: { metric: MetricDetail; items: readonly Correction[] }) {
  const head = lateWords.head;
  const names = figureNames(metric.aggregates);
  const withTexts = hasTexts(metric.aggregates);
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
            <th class="num">{head.events}</th>
            <th class="num">{head.late}</th>
            {names.map((name) => (
              <th key={name} class="num">
                {name}
              </th>
            ))}
            {withTexts && <th>{head.texts}</th>}
            <th>{head.sources}</th>
          </tr>
        }
        row={(one) => <Row key={`${one.seq}`} one={one} names={names} withTexts={withTexts} />}
      />
    </div>
  );
}

interface RowProps {
  readonly one: Correction;
  readonly names: readonly string[];
  readonly withTexts: boolean;
}

function Row({ one, names, withTexts }: RowProps) {
  const when = (ms: number) => clockOn(ms, nowMs.value, zone.value, "second");
  return (
    <tr data-testid="correction-row">
      <td>
        {when(one.t_ms - one.resolution_ms)}{" "}
        <span class="t3 s">{lengthWords(one.resolution_ms)}</span>
      </td>
      <td class="mono s">{nameOf(one)}</td>
      <td class="num">{`${one.events > 0 ? "+" : ""}${integer(one.events)}`}</td>
      <td class="num" title={lateWords.lateWhy(when(one.received_ms), when(one.final_ms))}>
        {span(one.late_ms)}
      </td>
      {names.map((name) => (
        <FigureCell
          key={name}
          was={figureOf(one.was, name)}
          now={figureOf(one.now, name)}
          gone={one.now === null}
        />
      ))}
      {withTexts && <TextsCell one={one} />}
      <td class="s" title={one.sources_exact ? lateWords.exactly : lateWords.upTo}>
        {sourcesOf(one)}
      </td>
    </tr>
  );
}

// A row has one line: of more texts that there are others, and those that are told as its title.
const SHOWN = 2;

/** Shows how often texts of late events came before and now, as figures are shown. */
function TextsCell({ one }: { one: Correction }) {
  const texts = textsOf(one);
  const all = texts.map(({ text, was, now }) => `${text} ${inFull(was)} → ${inFull(now)}`);
  return (
    <td class="s" title={all.join("\n")}>
      {texts.slice(0, SHOWN).map(({ text, was, now }, at) => (
        <span key={`${at}`} class="of-text">
          <span class="mono">{text}</span>
          <span>
            <span class="t3">{`${told(was)} → `}</span>
            <b>{told(now)}</b>
            {isEstimate(now) && (
              <span class="t3">{` ${lateWords.ends(short(now.low), short(now.high))}`}</span>
            )}
          </span>
        </span>
      ))}
      {texts.length > SHOWN && <span class="t3">{lateWords.others}</span>}
    </td>
  );
}

interface FigureCellProps {
  readonly was: Figure | null;
  readonly now: Figure | null;
  readonly gone: boolean;
}

/** Shows a figure before and after, and between what the later one lies; once if it is the same. */
function FigureCell({ was, now, gone }: FigureCellProps) {
  const before = told(was);
  const after = gone ? lateWords.gone : told(now);
  return (
    <td class="num" title={`${inFull(was)} → ${gone ? lateWords.gone : inFull(now)}`}>
      {before === after ? (
        <span class="t3">{after}</span>
      ) : (
        <>
          {was && <span class="t3">{`${before} → `}</span>}
          <b>{after}</b>
        </>
      )}
      {now && isEstimate(now) && (
        <span class="t3 s">{` ${lateWords.ends(short(now.low), short(now.high))}`}</span>
      )}
    </td>
  );
}

function isEstimate(one: Figure): boolean {
  return one.low !== one.high;
}

function told(one: Figure | null): string {
  return one && isEstimate(one) ? short(one.value) : fine(one?.value);
}

function inFull(one: Figure | null): string {
  return one && isEstimate(one)
    ? lateWords.between(exact(one.value), exact(one.low), exact(one.high))
    : exact(one?.value);
}
