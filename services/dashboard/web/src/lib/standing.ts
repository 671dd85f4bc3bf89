/** Where a rule stands: its state, and beside it whether that is known at all. Pure. */
import type { Rule, RuleGroup } from "../api/shapes";
import type { IconName } from "../components/icon";

/** A state as a screen shows it: its icon and color; the word is in the messages. */
export type StateName =
  | "firing"
  | "recovering"
  | "pending"
  | "no_data"
  | "stale"
  | "error"
  | "ok"
  | "stopped"
  | "resolved"
  | "ended"
  | "withdrawn";

export const LOOKS: Readonly<Record<StateName, readonly [icon: IconName, tone: string]>> = {
  firing: ["firing", "bad"],
  recovering: ["recovering", "warn"],
  pending: ["pending", "warn"],
  no_data: ["nodata", "none"],
  stale: ["stale", "warn"],
  error: ["alert", "bad"],
  ok: ["ok", "good"],
  stopped: ["pause", "none"],
  resolved: ["ok", "good"],
  ended: ["x", "none"],
  withdrawn: ["fix", "fix"],
};

/** How well a state is known; `ok` is not worth a word. */
export type Health = Rule["health"];
/** Why nothing can be told of a rule at all: it is not evaluated, or no longer. */
export type Sickness = Extract<Health, "stale" | "error">;

const WORST: readonly Health[] = ["error", "stale", "no_data", "ok"];

/** Returns the worst of some; `ok` of none. */
export function worstOf(healths: readonly Health[]): Health {
  return WORST.find((one) => healths.includes(one)) ?? "ok";
}

/** Returns how well the state of a series is known: its rule's troubles are its own. */
export function healthOf(rule: Rule, group: RuleGroup | undefined): Health {
  return worstOf([isSick(rule.health) ? rule.health : "ok", group?.health ?? "ok"]);
}

/** Returns for how long a series has been silent, ms; null where it is not. */
export function silenceOf(group: RuleGroup | undefined, nowMs: number): number | null {
  const begun = group?.silent_ms ?? null;
  return begun === null ? null : Math.max(0, nowMs - begun);
}

/** Tells whether a rule of that health is evaluated no more: what it says is old. */
export const isSick = (health: Health): health is Sickness =>
  health === "error" || health === "stale";

/** Returns the rules that should be evaluated and are not. */
export function sickOf(rules: readonly Rule[]): readonly Rule[] {
  return rules.filter((rule) => rule.mode !== "stopped" && isSick(rule.health));
}
