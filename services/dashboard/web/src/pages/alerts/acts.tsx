/** What somebody can do about an alert: take it on, give it back, silence it. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import type { AlertDetail, Rule } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { lazy } from "../../components/lazy";
import { Refused } from "../../components/notes";
import { openAlerts } from "../../lib/alerts";
import { onKey } from "../../lib/keys";
import { may } from "../../lib/session";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { actWords as said } from "../../messages.channels.en";
import { listNowMs } from "./choice";
import { askedOf } from "./silence";
import { useSending } from "./use-sending";

const SilenceForm = lazy(() => import("./silence-form"));

interface ActsProps {
  readonly alert: AlertDetail;
  readonly rule: Rule | null;
  readonly rules: readonly Rule[];
  /** Reads the alert anew. */
  reload(): void;
}

/** The buttons of an alert that fires, with the keys a and s. */
export function Acts({ alert, rule, rules, reload }: ActsProps) {
  const [silencing, setSilencing] = useState(false);
  const { problem, busy, turn } = useAcknowledging(alert, reload);
  const fires = alert.state === "firing" || alert.state === "recovering";
  const able = fires && may("operate");
  useEffect(() => {
    if (!able) return;
    const undo = [onKey("a", turn), onKey("s", () => setSilencing(true))];
    return () => {
      for (const one of undo) one();
    };
  }, [able, turn]);
  if (!able) return null;
  return (
    <>
      {problem && <Refused problem={problem} />}
      <div class="row wrap alert-acts">
        <button
          type="button"
          class={alert.ack ? "btn tall" : "btn go tall"}
          data-testid="acknowledge"
          title={alert.ack ? undefined : said.acknowledgeWhy}
          aria-disabled={busy}
          onClick={turn}
        >
          <Icon name={alert.ack ? "replay" : "check"} small />
          {alert.ack ? said.giveBack : said.acknowledge}
        </button>
        <button
          type="button"
          class="btn tall"
          data-testid="silence"
          onClick={() => setSilencing(true)}
        >
          <Icon name="pause" small />
          {said.silence}
        </button>
      </div>
      {silencing && (
        <SilenceForm
          first={askedOf(alert, rule)}
          rules={rules}
          done={() => {
            reload();
            void openAlerts.read();
          }}
          close={() => setSilencing(false)}
        />
      )}
    </>
  );
}

/** Takes an alert on, or gives it back. */
function useAcknowledging(alert: AlertDetail, reload: () => void) {
  const { busy, problem, send } = useSending();
  const path = `/alerts/${encodeURIComponent(alert.id)}/acknowledgement`;
  const asked = alert.ack
    ? { method: "DELETE" as const, path }
    : { method: "POST" as const, path, body: {} };
  const turn = () => {
    if (!busy) void send(() => call<AlertDetail>(asked), reload).then(() => openAlerts.read());
  };
  return { busy, problem, turn };
}

/** Who has taken an alert on, and what silences it. */
export function Held({ alert }: { alert: AlertDetail }) {
  const { ack, silenced_by: silences } = alert;
  return (
    <>
      {ack && (
        <span class="chip" data-testid="taken-on" title={ack.note}>
          <Icon name="check" small />
          {said.takenOn(ack.by, clockOn(ack.until_ms, listNowMs.value, zone.value))}
        </span>
      )}
      {silences.length > 0 && (
        <span class="chip" data-testid="silenced">
          <Icon name="pause" small />
          {said.silencedBy(silences.join(", "))}
        </span>
      )}
    </>
  );
}
