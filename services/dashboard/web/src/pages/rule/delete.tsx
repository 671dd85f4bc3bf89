/** What the page asks before a rule is deleted. */
import { useState } from "preact/hooks";
import { Question } from "../../components/leaving";
import { ruleWords as words } from "../../messages.rules.en";
import type { Writing } from "./use-rule";

/** The button that deletes, and what it asks. */
export function Delete({ rule, name }: { rule: Writing; name: string }) {
  const [asks, setAsks] = useState(false);
  const said = words.remove;
  return (
    <>
      <button type="button" class="btn" data-testid="rule-delete" onClick={() => setAsks(true)}>
        {said.button}
      </button>
      {asks && (
        <Question
          {...said}
          title={said.title(name)}
          close={() => setAsks(false)}
          act={() => {
            setAsks(false);
            rule.remove();
          }}
        />
      )}
    </>
  );
}
