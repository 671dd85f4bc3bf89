/** Four checks: does everything between a client and this screen work? */
import { useLoad } from "../../api/load";
import type { Status, StatusPart } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { session } from "../../lib/session";
import { span } from "../../lib/time";
import { fresh } from "../../live/live";
import { words } from "../../messages.en";

const RELOAD_MS = 2_000;

interface Check {
  readonly ok: boolean | null;
  readonly text: string;
}

/** Returns the four checks, from heartbeats and freshness; null where nothing is known. Pure. */
export function checksOf(parts: readonly StatusPart[] | null, culprit: string | null): Check[] {
  const said = words.live.check;
  if (parts === null) {
    return [said.ingest, said.kafka, said.panes("–"), said.redis].map((text) => ({
      ok: null,
      text,
    }));
  }
  const part = (name: string) => parts.find((one) => one.name === name && one.running);
  const ingest = part("ingest");
  const panes = part("panes");
  const kafka = culprit !== "kafka" && (ingest?.status === "ok" || panes !== undefined);
  const counts = panes !== undefined && culprit !== "panes";
  return [
    { ok: ingest !== undefined, text: ingest ? said.ingest : said.ingestDown },
    { ok: kafka, text: kafka ? said.kafka : said.kafkaDown },
    {
      ok: counts,
      text: counts ? said.panes(span(panes?.lag_ms ?? 0)) : said.panesDown,
    },
    { ok: culprit !== "redis", text: culprit === "redis" ? said.redisDown : said.redis },
  ];
}

/** The panel. */
export function Checks() {
  const ready = session.value?.signed_in ?? false;
  const { body } = useLoad<Status>(ready ? "/status" : null, RELOAD_MS);
  const told = fresh.value;
  const culprit = told?.status === "stale" ? told.part : null;
  return (
    <section class="panel" aria-label={words.live.checks}>
      <ul class="checks s body" data-testid="checks">
        {checksOf(body?.parts ?? null, culprit).map(({ ok, text }) => (
          <li key={text}>
            <span class={ok === null ? "t3" : ok ? "good" : "bad"}>
              <Icon name={ok === null ? "nodata" : ok ? "ok" : "alert"} small />
            </span>
            {text}
          </li>
        ))}
      </ul>
    </section>
  );
}
