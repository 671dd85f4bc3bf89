/** What audits say of a metric: a sample of its panes, counted again from the log. */
import type { MetricDetail } from "../../api/shapes";
import { Icon, type IconName } from "../../components/icon";
import { integer } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { auditWords as words } from "../../messages.audits.en";

type Audited = NonNullable<MetricDetail["verified"]>;
type NotCompared = NonNullable<MetricDetail["not_compared"]>;
/** Returns an instant as it is told. */
type When = (ms: number) => string;

/**
 * Draws nothing for a metric that no audit was to compare. What an audit said of other numbers than
 * those that are served now, or before later ones compared nothing, is told without a color: of
 * what is served now nobody has compared anything.
 */
export default function Verified({ metric }: { metric: MetricDetail }) {
  const { verified, not_compared: nothing } = metric;
  if (!verified && !nothing) return null;
  const when: When = (ms) => clockOn(ms, nowMs.value, zone.value);
  const [look, icon] = lookOf(metric);
  const said = [
    verified && textOf(verified, metric.version, when),
    nothing && words.nothing(when(nothing.since_ms)),
  ];
  const about = [verified && titleOf(verified, when), nothing && nothingOf(nothing, when)];
  return (
    <span class={`state ${look}`} title={about.filter(Boolean).join(". ")} data-testid="verified">
      <Icon name={icon} />
      {said.filter(Boolean).join(", ")}
    </span>
  );
}

function lookOf({ verified, not_compared }: MetricDetail): [string, IconName] {
  if (!verified || verified.withdrawn_by) return ["none", "stale"];
  if (!verified.ok) return ["bad", "alert"];
  return not_compared ? ["none", "stale"] : ["good", "ok"];
}

function textOf(told: Audited, version: number, when: When): string {
  const found = told.ok ? words.verified(when(told.at_ms)) : words.differs(when(told.at_ms));
  const drawn = told.panes + told.left_out + told.overtaken;
  const audited =
    drawn > told.panes ? words.inPart(found, integer(told.panes), integer(drawn)) : found;
  return told.withdrawn_by ? words.withdrawn[told.withdrawn_by](audited, version) : audited;
}

function titleOf(told: Audited, when: When): string {
  const [from, to] = [when(told.from_ms), when(told.to_ms)];
  return [
    words.audited(told.panes, integer(told.events), told.version, from, to),
    told.left_out > 0 && words.leftOut(integer(told.left_out)),
    told.overtaken > 0 && words.overtaken(integer(told.overtaken)),
    told.bounded_by === "records" && words.noFurther,
  ]
    .filter(Boolean)
    .join("; ");
}

function nothingOf(told: NotCompared, when: When): string {
  const why = told.why === "not_drawn" ? (told.bounded_by ?? told.why) : told.why;
  return words.nothingOf(when(told.at_ms), words.why[why]);
}
