/** A state as icon, word and color. */
import { type Health, LOOKS, type StateName } from "../lib/standing";
import { alertWords } from "../messages.alerts.en";
import { Icon } from "./icon";

/** Shows a state; as a pill where it is what the page is about. */
export function StateTag({ state, pill = false }: { state: StateName; pill?: boolean }) {
  const [icon, tone] = LOOKS[state];
  return (
    <span class={`state ${tone}${pill ? " pill" : ""}`} data-state={state}>
      <Icon name={icon} />
      <span class="w">{alertWords.states[state]}</span>
    </span>
  );
}

/** Shows that a state is not known, or not known any more; nothing where all is well. */
export function HealthTag({ health, why }: { health: Health; why?: string | null }) {
  if (health === "ok") return null;
  return (
    <span data-testid="health" data-health={health} title={why ?? undefined}>
      <StateTag state={health} />
    </span>
  );
}

/** Whether a verdict may still change. */
export function Verdict({ verdict }: { verdict: "provisional" | "confirmed" }) {
  if (verdict === "provisional") {
    return <span class="tag-prov">{alertWords.verdicts.provisional}</span>;
  }
  return (
    <span class="state pill good">
      <Icon name="check" />
      {alertWords.verdicts.confirmed}
    </span>
  );
}
