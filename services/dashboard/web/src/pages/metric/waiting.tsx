/** Why the newest version of a metric does not serve, in the server's words, and what does. */
import type { MetricDetail } from "../../api/shapes";
import { Note } from "../../components/notes";
import { metricWords } from "../../messages.metrics.en";

/** Draws nothing while nothing keeps the newest version from serving. */
export function Waiting({ metric }: { metric: MetricDetail }) {
  if (!metric.waiting) return null;
  const { version, instead, why } = metric.waiting;
  return (
    <Note tone="warn" icon="stale">
      <span data-testid="waiting">
        {instead === null
          ? metricWords.metric.waiting(version, why)
          : metricWords.metric.waitingInstead(version, why, instead)}
      </span>
    </Note>
  );
}
