/** A test of a channel: the button, and the receiver's real answer beside it. */
import { useState } from "preact/hooks";
import { post, problemOf } from "../../api/client";
import type { ChannelTest } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { may } from "../../lib/session";
import type { Problem } from "../../live/wire";
import { actWords } from "../../messages.channels.en";

const said = actWords.channels;

/** What came of a message: icon, word and color. */
export function Outcome({ outcome }: { outcome: string }) {
  const good = outcome === "delivered";
  return (
    <span class={`state ${good ? "good" : "bad"}`} data-outcome={outcome}>
      <Icon name={good ? "ok" : "alert"} />
      {said.outcomes[outcome] ?? outcome}
    </span>
  );
}

/** The button; `done` is told once the answer is there. */
export function TestButton({ name, done }: { name: string; done?: () => void }) {
  const [busy, setBusy] = useState(false);
  const [found, setFound] = useState<ChannelTest | Problem | null>(null);
  const send = () => {
    if (busy) return;
    setBusy(true);
    setFound(null);
    post<ChannelTest>(`/channels/${encodeURIComponent(name)}/test`, {})
      .then(setFound, (error: unknown) => setFound(problemOf(error)))
      .finally(() => {
        setBusy(false);
        done?.();
      });
  };
  return (
    <span class="row wrap">
      {may("operate") && (
        <button
          type="button"
          class="btn sm"
          data-testid="test-channel"
          aria-label={said.testLabel(name)}
          aria-disabled={busy}
          onClick={send}
        >
          {busy ? said.testing : said.test}
        </button>
      )}
      <span role="status" data-testid="test-answer">
        {found && <Answer found={found} />}
      </span>
    </span>
  );
}

function Answer({ found }: { found: ChannelTest | Problem }) {
  if (!("outcome" in found)) return <span class="bad s">{found.message}</span>;
  return (
    <>
      <Outcome outcome={found.outcome} />{" "}
      <span class="t2 s">{said.came(found.status, found.took_ms)}</span>
      {found.why && <span class="t2 s why">{found.why}</span>}
    </>
  );
}
