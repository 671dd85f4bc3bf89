/** What the form says of mistakes: each once, and where it can be mended. Pure. */
import { type Draft, type Faults, fieldOf, type Tried } from "../../lib/draft";
import type { Problem, ProblemPlace } from "../../live/wire";
import { words } from "../../messages.en";
import { makeWords } from "../../messages.make.en";

const GIVEN = "given";

/** Returns a place as a field tells it: one that is to be filled in need not say with what. */
export function inField(place: ProblemPlace): ProblemPlace {
  return place.required === GIVEN ? { ...place, mend: "" } : place;
}

/** Returns the refusal of a metric without a name, with whatever else is known to be wrong. */
export function unnamed(errors: readonly ProblemPlace[]): Problem {
  const name = { pointer: "/name", required: GIVEN, got: "", mend: words.form.addName };
  return {
    status: 422,
    code: "definition_invalid",
    message: `/name ${words.errors.required(name)}`,
    errors: [name, ...errors.filter((place) => place.pointer !== "/name")],
  };
}

/** Returns a refusal to create in the form's terms: a conflict is a name that is taken. */
export function refusalOf(problem: Problem, name: string): Problem {
  if (problem.code !== "version_conflict") return problem;
  const taken = { pointer: "/name", required: words.form.free, got: name, mend: words.form.other };
  return { ...problem, message: `/name ${words.errors.required(taken)}`, errors: [taken] };
}

/** Returns whether all of a refusal stands at its fields; a text shows all that has a place. */
export function isTold(problem: Problem | null, asText: boolean): boolean {
  const places = problem?.errors ?? [];
  return places.length > 0 && (asText || places.every((one) => fieldOf(one.pointer) !== null));
}

/** Returns why nothing is tried: whole, unless the reason stands at its field or text already. */
export function waitOf(why: Tried["why"], faults: Faults | "text"): string | null {
  if (why === null) return null;
  if (faults === "text") return words.form.waitsForText;
  const field = fieldOf(why.pointer);
  const name = field === null ? why.pointer : labelOf(field);
  return field !== null && faults.has(field)
    ? words.form.waitsFor(name)
    : words.form.waits(name || words.form.definition, words.errors.required(inField(why)));
}

/** Returns what a field is called in the form. */
function labelOf(field: keyof Draft): string {
  return makeWords[field];
}
