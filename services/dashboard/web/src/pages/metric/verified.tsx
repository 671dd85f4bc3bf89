/** What the newest audit says of a metric: a sample of its panes, counted again. */
import type { MetricDetail } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { integer } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { metricWords } from "../../messages.metrics.en";

/** Draws nothing for a metric that no audit has compared. */
export function Verified({ metric }: { metric: MetricDetail }) {
  if (!metric.verified) return null;
  const when = (ms: number) => clockOn(ms, nowMs.value, zone.value);
  const { ok, at_ms, from_ms, to_ms, panes, events, version } = metric.verified;
  return (
    <span
      class={ok ? "state good" : "state bad"}
      title={metricWords.metric.audited(
        panes,
        integer(events),
        version,
        when(from_ms),
        when(to_ms),
      )}
      data-testid="verified"
    >
      <Icon name={ok ? "ok" : "alert"} />
      {ok ? metricWords.metric.verified(when(at_ms)) : metricWords.metric.differs(when(at_ms))}
    </span>
  );
}
