/** How the rules on the number stand that is shown here: icon, word and color. */
import { rulesOn, type Shown } from "../charts/watched";
import { chartRules, openAlerts, useReader } from "../lib/alerts";
import { worstOf } from "../lib/standing";
import { HealthTag, StateTag } from "./state-tag";

/** Shows that one of the number's rules fires, and that one is not known; else nothing. */
export function Fires({ shown }: { shown: Shown }) {
  const known = useReader(chartRules).items ?? [];
  const open = useReader(openAlerts).items ?? [];
  const rules = rulesOn(known, shown);
  const names = new Set(rules.map((rule) => rule.name));
  const health = worstOf(rules.map((rule) => rule.health));
  const why = rules.find((rule) => rule.health === health)?.why ?? null;
  return (
    <>
      {open.some((alert) => names.has(alert.rule)) && (
        <span data-testid="fires">
          <StateTag state="firing" />
        </span>
      )}
      <HealthTag health={health} why={why} />
    </>
  );
}
