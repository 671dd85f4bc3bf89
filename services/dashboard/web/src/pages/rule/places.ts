/** Where the page of a rule leads, and what it is opened with. Pure, but for the address. */
import type { Metric } from "../../api/shapes";
import { isList } from "../../lib/numbers";
import { newRule } from "../../lib/rule-text";
import { lengthOf } from "../../lib/time";
import { to } from "../../lib/view";

const MOST_NAME = 64;
const USUAL_MS = 300_000;

/** Returns the address of the list of rules. */
export function toRules(): string {
  const address = to("/alerts");
  return `${address}${address.includes("?") ? "&" : "?"}tab=rules`;
}

/** Returns the text that an address asks for: a metric, one of its aggregates, dimensions. */
export function beginningOf(params: URLSearchParams, metrics: readonly Metric[]): string {
  const metric = metrics.find((one) => one.name === params.get("metric")) ?? metrics[0];
  if (!metric) return "";
  const asked = params.get("agg");
  const by = params.get("by")?.split(",") ?? [];
  const window =
    lengthOf(params.get("win") ?? "") === null ? usualWindow(metric) : params.get("win");
  return newRule({
    name: `${metric.name.slice(0, MOST_NAME - 5)}_high`,
    metric: metric.name,
    aggregate:
      numbersOf(metric.aggregates).find((one) => one === asked) ?? usual(metric.aggregates),
    window: window ?? "5m",
    by: metric.by.filter((one) => by.includes(one)),
  });
}

/** Five minutes, or a pane where panes are longer. */
function usualWindow(metric: Metric): string {
  return metric.resolution_ms <= USUAL_MS ? "5m" : "1h";
}

/** Returns the aggregates that a rule can hold against a limit: a list of texts is no number. */
export function numbersOf(aggregates: readonly string[]): readonly string[] {
  return aggregates.filter((one) => !isList(one));
}

/** A rule is most often about what is slow, else about how much there is. */
export function usual(aggregates: readonly string[]): string {
  const liked = ["p95", "p99", "avg", "rate", "count"];
  return liked.find((one) => aggregates.includes(one)) ?? numbersOf(aggregates)[0] ?? "count";
}
