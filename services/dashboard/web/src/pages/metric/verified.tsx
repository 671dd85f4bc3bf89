/** What the newest audit says of a metric: a sample of its panes, counted again. */
import type { MetricDetail } from "../../api/shapes";
import { Icon, type IconName } from "../../components/icon";
import { integer } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { metricWords } from "../../messages.metrics.en";

type Audited = NonNullable<MetricDetail["verified"]>;

/**
 * Draws nothing for a metric that no audit has compared. What an audit said of other numbers than
 * those that are served now is told without a colour: nobody has compared these.
 */
export function Verified({ metric }: { metric: MetricDetail }) {
  const told = metric.verified;
  if (!told) return null;
  const when = (ms: number) => clockOn(ms, nowMs.value, zone.value);
  const words = metricWords.metric;
  const [look, icon] = lookOf(told);
  const audited = told.ok ? words.verified(when(told.at_ms)) : words.differs(when(told.at_ms));
  return (
    <span
      class={`state ${look}`}
      title={words.audited(
        told.panes,
        integer(told.events),
        told.version,
        when(told.from_ms),
        when(told.to_ms),
      )}
      data-testid="verified"
    >
      <Icon name={icon} />
      {told.withdrawn_by ? words.withdrawn[told.withdrawn_by](audited, metric.version) : audited}
    </span>
  );
}

function lookOf(told: Audited): [string, IconName] {
  if (told.withdrawn_by) return ["none", "stale"];
  return told.ok ? ["good", "ok"] : ["bad", "alert"];
}
