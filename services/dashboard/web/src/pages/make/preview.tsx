/** What a draft makes of the newest events: for each, matched or not, value, series or the reason. */
import { useEffect, useState } from "preact/hooks";
import { post, Refusal } from "../../api/client";
import type { PreviewEvent, Preview as Tried } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { VirtualTable } from "../../components/virtual-table";
import type { Tried as Trial } from "../../lib/draft";
import { exact, NONE, short } from "../../lib/numbers";
import { may } from "../../lib/session";
import { clock } from "../../lib/time";
import { zone } from "../../lib/view";
import { words } from "../../messages.en";
import { makeWords } from "../../messages.make.en";

const PAUSE_MS = 250;
const AGAIN_MS = 3_000;
const LAST = 200;

interface PreviewProps extends Pick<Trial, "text" | "valid"> {
  /** Why it cannot be tried, in words. */
  readonly wait: string | null;
}

/** Tries the text on the tail, a moment after each change and every few seconds. */
export function Preview({ text, valid, wait }: PreviewProps) {
  const [tried, setTried] = useState<Tried | null>(null);
  const allowed = may("tail");
  useEffect(() => {
    if (!allowed || !valid) return;
    const abort = new AbortController();
    let timer = 0;
    const attempt = () =>
      post<Tried>("/preview", { text, last: LAST }, abort.signal)
        .then(setTried)
        .catch((error: unknown) => {
          // Changed while it was on its way: the check tells at its field; the last trial stays.
          if (error instanceof Refusal) return;
        })
        .finally(() => {
          if (!abort.signal.aborted) timer = window.setTimeout(attempt, AGAIN_MS);
        });
    timer = window.setTimeout(attempt, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, allowed, valid]);
  if (!allowed) return <p class="t3 s">{words.live.tailScope}</p>;
  return (
    <section class="preview" aria-label={makeWords.preview}>
      <div class="row wrap preview-head">
        <h3>{makeWords.preview}</h3>
        {tried && <span class="t3 s">{makeWords.previewSub(tried.seen)}</span>}
        <span class="grow" />
        {tried && tried.seen > 0 && !wait && <Sums tried={tried} />}
      </div>
      {wait && (
        <p class="t3 s said" data-testid="preview-why">
          {wait}
        </p>
      )}
      {tried?.seen === 0 && <p class="t3 s">{makeWords.previewNone}</p>}
      {tried && tried.seen > 0 && (
        <div class={wait ? "dimmed" : undefined}>
          <Rows events={sorted(tried.events)} />
        </div>
      )}
    </section>
  );
}

/** What matched comes first, the newest on top: it is what one looks for. */
function sorted(events: readonly PreviewEvent[]): readonly PreviewEvent[] {
  return [...events].sort((a, b) => Number(b.matched) - Number(a.matched));
}

function Sums({ tried }: { tried: Tried }) {
  return (
    <span class="s" data-testid="preview-sums" data-matched={tried.matched} data-seen={tried.seen}>
      <b>{makeWords.matched(tried.matched, tried.seen)}</b>
      {tried.refused > 0 && <span class="warn"> · {makeWords.refused(tried.refused)}</span>}
    </span>
  );
}

function Rows({ events }: { events: readonly PreviewEvent[] }) {
  const head = makeWords.head;
  return (
    <VirtualTable
      label={makeWords.previewRows}
      rows={events}
      head={
        <tr>
          <th>{head.time}</th>
          <th>{head.type}</th>
          <th>{head.matched}</th>
          <th class="num">{head.value}</th>
          <th>{head.series}</th>
        </tr>
      }
      row={(event) => <Row key={event.id + event.time_ms} event={event} />}
    />
  );
}

function Row({ event }: { event: PreviewEvent }) {
  const refused = Boolean(event.reason);
  return (
    <tr
      class={event.matched ? undefined : "t3"}
      data-testid="preview-row"
      data-matched={event.matched}
      data-reason={event.reason ?? ""}
    >
      <td>
        {event.time_ms === null || event.time_ms === undefined
          ? NONE
          : clock(event.time_ms, zone.value, "second")}
      </td>
      <td>{event.type}</td>
      <td>
        {refused ? (
          <span class="row warn">
            <Icon name="alert" small />
            {event.reason}
          </span>
        ) : (
          <span class={event.matched ? "row good" : "row"}>
            {event.matched && <Icon name="check" small />}
            {event.matched ? makeWords.yes : makeWords.no}
          </span>
        )}
      </td>
      <td class="num" title={exact(event.value)}>
        {event.matched && !refused ? short(event.value) : NONE}
      </td>
      <td class="mono s">{seriesText(event)}</td>
    </tr>
  );
}

function seriesText({ matched, series, reason }: PreviewEvent): string {
  if (!matched || reason || !series) return NONE;
  const parts = Object.entries(series).map(([name, value]) => `${name}=${value ?? NONE}`);
  return parts.join(" ") || makeWords.whole;
}
