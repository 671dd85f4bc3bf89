/** That a rule fires on the number that is shown here: icon, word and color. */
import { rulesOn, type Shown } from "../charts/watched";
import { chartRules, openAlerts, useReader } from "../lib/alerts";
import { alertWords } from "../messages.alerts.en";
import { Icon } from "./icon";

/** Shows that one of the number's rules fires; nothing where none does. */
export function Fires({ shown }: { shown: Shown }) {
  const known = useReader(chartRules).items ?? [];
  const open = useReader(openAlerts).items ?? [];
  const names = new Set(rulesOn(known, shown).map((rule) => rule.name));
  if (!open.some((alert) => names.has(alert.rule))) return null;
  return (
    <span class="state bad" data-testid="fires">
      <Icon name="firing" />
      <span class="w">{alertWords.states.firing}</span>
    </span>
  );
}
