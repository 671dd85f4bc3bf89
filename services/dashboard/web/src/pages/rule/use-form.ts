/** The form of a text, and how it changes it; a new rule gets a limit proposed until one is chosen. */
import { useMemo, useRef } from "preact/hooks";
import { type RuleForm, readRule, writeRule } from "../../lib/rule-text";
import type { Writing } from "./use-rule";

/** Returns the form, null where the text cannot be shown as one, and what changes it. */
export function useForm(rule: Writing, isNew: boolean) {
  const form = useMemo(() => readRule(rule.text), [rule.text]);
  const chosen = useRef(!isNew);
  const proposed = useRef("");
  const change = (part: Partial<RuleForm>) => {
    if (!form) return;
    if ("low" in part || "high" in part || "side" in part) chosen.current = true;
    rule.setText(writeRule(rule.text, { ...form, ...part }));
  };
  const propose = (limit: number) => {
    if (!form || chosen.current) return;
    const about = [form.metric, form.aggregate, form.window, ...form.by].join();
    if (proposed.current === about) return;
    proposed.current = about;
    rule.propose(writeRule(rule.text, { ...form, high: String(limit) }));
  };
  return { form, change, propose };
}
