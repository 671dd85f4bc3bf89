/** What stands where a rule could: why there is none, and how one is made. */
import { Icon } from "../../components/icon";
import { Empty } from "../../components/notes";
import { may } from "../../lib/session";
import { to } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";

/** The way to a new rule. */
export function NewRule() {
  return (
    <a class="btn go" href={to("/rules/new")} data-testid="new-rule">
      <Icon name="plus" small />
      {alertWords.newRule}
    </a>
  );
}

/** What a rule is, for who has none. */
export function NoRules() {
  return (
    <div class="panel">
      <Empty icon="bell" title={alertWords.empty.noRules}>
        <span class="prose-narrow">{alertWords.empty.what}</span>
        {may("define") ? <NewRule /> : <span class="t3 s">{alertWords.empty.scope}</span>}
      </Empty>
    </div>
  );
}
