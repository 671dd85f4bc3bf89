/** A state as icon, word and color. */
import { Icon } from "../../components/icon";
import { alertWords } from "../../messages.alerts.en";
import { LOOKS, type StateName } from "./now";

/** Shows a state; as a pill where it is what the page is about. */
export function StateTag({ state, pill = false }: { state: StateName; pill?: boolean }) {
  const [icon, tone] = LOOKS[state];
  return (
    <span class={`state ${tone}${pill ? " pill" : ""}`} data-state={state}>
      <Icon name={icon} />
      {alertWords.states[state]}
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
