/** The text of a metric's definition, and who changed it when. */
import type { Definition, MetricDetail } from "../../api/shapes";
import { Copy } from "../../components/copy";
import { clockOn } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { metricWords } from "../../messages.metrics.en";

interface DefinitionTabProps {
  readonly metric: MetricDetail;
  readonly definition: Definition | null;
}

/** Definition and history side by side. */
export default function DefinitionTab({ metric, definition }: DefinitionTabProps) {
  const text = definition?.text ?? "";
  return (
    <div class="grid">
      <section class="panel c8">
        <header>
          <h2>{metricWords.metric.tabs.definition}</h2>
          <span class="sub">{metricWords.metric.version(metric.version)}</span>
          <span class="grow" />
          <a class="btn sm quiet" href={to(`/d/metric/${metric.name}`)}>
            {metricWords.metric.edit}
          </a>
          <Copy class="quiet" text={text} />
        </header>
        <div class="body">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
          <pre class="code" tabIndex={0} data-testid="definition-text">
            {text}
          </pre>
        </div>
      </section>
      <section class="panel c4">
        <header>
          <h2>{metricWords.metric.history}</h2>
        </header>
        <ul class="alist">
          {metric.versions.map((change) => (
            <li key={change.version}>
              <span class="who">{metricWords.metric.version(change.version)}</span>
              <span class="what">{clockOn(change.at_ms, nowMs.value, zone.value)}</span>
              <span class="what">
                {change.op === "delete"
                  ? metricWords.metric.deleted
                  : metricWords.metric.changed(change.by)}
              </span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
