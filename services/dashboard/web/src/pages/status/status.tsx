/** Status: each part of Weir by its own heartbeat. */
import { useLoad } from "../../api/load";
import type { Status, StatusPart } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { integer, NONE, percent, short } from "../../lib/numbers";
import { session } from "../../lib/session";
import { span } from "../../lib/time";
import { to } from "../../lib/view";
import { words } from "../../messages.en";
import { Holding, Sources } from "./holding";

const RELOAD_MS = 2_000;
const MEGABYTE = 1_048_576;

export default function StatusPage() {
  useTitle(words.status.title);
  const ready = session.value?.signed_in ?? false;
  const { body, problem, reload } = useLoad<Status>(ready ? "/status" : null, RELOAD_MS);
  return (
    <>
      <div class="bar">
        <h1>{words.status.title}</h1>
        <span class="sub">{body && words.status.sub(body.epoch, body.rev)}</span>
        <span class="grow" />
        <a class="btn" href={to("/ledger")}>
          {words.nav.ledger}
        </a>
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {body?.parts.length === 0 && <Empty title={words.status.none} />}
      <div class="stack">
        {body && <Holding status={body} />}
        {body && body.parts.length > 0 && <Parts status={body} />}
        {ready && <Sources />}
      </div>
    </>
  );
}

function Parts({ status }: { status: Status }) {
  const head = words.status.head;
  return (
    <section class="panel">
      <VirtualTable
        label={words.status.parts}
        tall
        rows={status.parts}
        head={
          <tr>
            <th>{head.part}</th>
            <th>{head.state}</th>
            <th class="num">{head.in}</th>
            <th class="num">{head.busy}</th>
            <th class="num">{head.lag}</th>
            <th class="num">{head.memory}</th>
            <th class="num">{head.heard}</th>
            <th>{head.version}</th>
          </tr>
        }
        row={(part) => (
          <PartRow key={`${part.name}:${part.instance}`} part={part} nowMs={status.now_ms} />
        )}
      />
    </section>
  );
}

function PartRow({ part, nowMs }: { part: StatusPart; nowMs: number }) {
  return (
    <tr data-testid="part-row" data-part={part.name}>
      <td>
        <b>{words.status.names[part.name] ?? part.name}</b>{" "}
        <span class="t3 s mono">{part.instance}</span>
      </td>
      <td>
        <PartState part={part} />
      </td>
      <td class="num">{part.in === null ? NONE : `${short(part.in)} /s`}</td>
      <td class="num">{part.busy === null ? NONE : percent(part.busy)}</td>
      <td class="num">{part.lag_ms === null ? NONE : span(part.lag_ms)}</td>
      <td class="num">
        {part.rss_bytes === null ? NONE : `${integer(part.rss_bytes / MEGABYTE)} MB`}
      </td>
      <td class="num t2">{words.status.heard(span(nowMs - part.at_ms))}</td>
      <td class="mono s t2">{part.version || NONE}</td>
    </tr>
  );
}

function PartState({ part }: { part: StatusPart }) {
  if (!part.running) {
    return (
      <span class="state bad">
        <Icon name="off" />
        {words.status.gone}
      </span>
    );
  }
  const ok = part.status === "ok";
  return (
    <span class={ok ? "state good" : "state warn"}>
      <Icon name={ok ? "ok" : "stale"} />
      {ok ? words.status.running : part.status}
    </span>
  );
}
