/** That a new version is being counted from the log, how far it is, and what is shown until then. */
import type { MetricDetail } from "../../api/shapes";
import { Note } from "../../components/notes";
import { metricWords } from "../../messages.metrics.en";

/** Draws nothing once the newest version serves. */
export function Filling({ metric }: { metric: MetricDetail }) {
  if (!metric.filling) return null;
  const { version, instead, at, of } = metric.filling;
  const share = of > 0 ? Math.floor((at / of) * 100) : 0;
  return (
    <Note tone="good" icon="stale">
      <span data-testid="filling">
        {instead === null
          ? metricWords.metric.filling(share)
          : metricWords.metric.fillingInstead(version, share, instead)}
      </span>
    </Note>
  );
}
