/** What happened to an alert: transitions and deliveries, oldest first. */
import type { AlertDetail } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { clockOn, iso } from "../../lib/time";
import { zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { listNowMs } from "./choice";
import { type Entry, timelineOf } from "./timeline";

/** The panel with the timeline. */
export function HappenedPanel({ alert }: { alert: AlertDetail }) {
  return (
    <section class="panel">
      <header>
        <h2>{alertWords.detail.happened}</h2>
      </header>
      <div class="body">
        <ol class="tl" data-testid="happened">
          {timelineOf(alert).map((entry, at) => (
            <Line key={`${at} ${entry.atMs}`} entry={entry} />
          ))}
        </ol>
      </div>
    </section>
  );
}

function Line({ entry }: { entry: Entry }) {
  return (
    <li>
      <time dateTime={iso(entry.atMs)}>
        {clockOn(entry.atMs, listNowMs.value, zone.value, "second")}
      </time>
      <span class={`m ${entry.tone}`}>
        <Icon name={entry.icon} />
      </span>
      <span>
        {entry.text}
        {entry.channel !== null && (
          <>
            {" "}
            <b>{entry.channel}</b> <span class="t3">{entry.answer}</span>
          </>
        )}
        {entry.provisional && <span class="tag-prov">{alertWords.provisional}</span>}
      </span>
    </li>
  );
}
