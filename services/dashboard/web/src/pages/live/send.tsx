/** A command that sends an event: with the real address and a fresh key. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { post, problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { IngestAddress, Page, SeenType, ShownKey } from "../../api/shapes";
import { Copy } from "../../components/copy";
import { Icon } from "../../components/icon";
import { Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import { may, session } from "../../lib/session";
import { span } from "../../lib/time";
import { nowMs } from "../../live/live";
import type { Problem } from "../../live/wire";
import { words } from "../../messages.en";
import { CLIENTS, type Client, commandOf, KEY_PLACE, tokensOf } from "./command";

const NO_KEY_YET = "wk_…";

/** The panel. */
export function Send({ newestMs }: { newestMs: number | null }) {
  const [client, setClient] = useState<Client>("curl");
  const ready = session.value?.signed_in ?? false;
  const address = useLoad<IngestAddress>(ready ? "/discovery/ingest" : null);
  const { key, problem, make } = useFreshKey();
  const url = address.body?.events_url;
  const shownKey = key?.key ?? (may("admin") ? NO_KEY_YET : KEY_PLACE);
  const command = url ? commandOf(client, url, shownKey) : "";
  return (
    <section class="panel" aria-label={words.live.send}>
      <header>
        <h2>{words.live.send}</h2>
        <span class="sub">{words.live.sendSub}</span>
        <span class="grow" />
        {newestMs !== null && (
          <span class="row good s b">
            <Icon name="ok" small />
            {words.live.newest(span(nowMs.value - newestMs))}
          </span>
        )}
      </header>
      <div class="body">
        <Seg
          class="bare"
          label={words.live.client}
          value={client}
          choices={CLIENTS.map(([value, text]) => ({ value: value as Client, text }))}
          onPick={(next) => setClient(next)}
        />
        {problem && <Refused problem={problem} retry={make} />}
        {address.problem && <Refused problem={address.problem} retry={address.reload} />}
        <Command text={command} ready={key !== null} />
      </div>
      <footer>
        {key ? (
          <span>{words.live.keyShown(key.id)}</span>
        ) : (
          <span>{may("admin") ? words.live.keyNeeded : words.live.keyScope}</span>
        )}
        <span class="grow" />
        {may("admin") && (
          <button type="button" class="btn sm" data-testid="make-key" onClick={make}>
            {words.live.makeKey}
          </button>
        )}
      </footer>
    </section>
  );
}

function Command({ text, ready }: { text: string; ready: boolean }) {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="code" tabIndex={0} aria-label={words.live.command}>
        <code data-testid="curl-command" data-ready={ready}>
          {tokensOf(text).map(([kind, piece], at) => (
            // pieces of one text, in order
            <span key={at} class={kind}>
              {piece}
            </span>
          ))}
        </code>
        <span class="c">
          {"\n\n"}
          {words.live.answer}
        </span>
      </section>
      <Copy class="command-copy" text={text} testid="copy-command" />
    </div>
  );
}

interface FreshKey {
  readonly made: ShownKey;
  /** The key of whoever was signed in when it was asked for: it is theirs alone. */
  readonly by: string | null;
}

/** The key of this visit: shown once by the server, held in memory only. */
const fresh = signal<FreshKey | null>(null);

const whose = (): string | null => session.value?.key_id ?? null;

/**
 * A key that may only send events.
 *
 * Where nothing has ever been sent it is made at once, so that the command works as it
 * stands; elsewhere on demand, so that looking at the page leaves no keys behind.
 */
function useFreshKey() {
  const key = fresh.value !== null && fresh.value.by === whose() ? fresh.value.made : null;
  const ready = may("admin") && key === null;
  const types = useLoad<Page<SeenType>>(ready ? "/discovery/types" : null);
  const first = ready && types.body?.items.length === 0;
  const [problem, setProblem] = useState<Problem | null>(null);
  const make = () => {
    setProblem(null);
    const by = whose();
    post<ShownKey>("/keys", { label: "first run", scopes: ["ingest"], source: "first-run" }).then(
      (made) => {
        // Of somebody who has gone: it must not take the place of one that is shown only once.
        if (by === whose()) fresh.value = { made, by };
      },
      (error: unknown) => setProblem(problemOf(error)),
    );
  };
  // once, when it turns out to be the first run
  useEffect(() => {
    if (first) make();
  }, [first]);
  return { key, problem, make };
}
