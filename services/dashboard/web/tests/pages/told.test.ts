import { describe, expect, it } from "vitest";
import { saidIn, unsaidOf } from "../../src/components/notes";
import { EMPTY_DRAFT, faultsOf } from "../../src/lib/draft";
import { words } from "../../src/messages.en";
import { inField, isTold, refusalOf, unnamed, waitOf } from "../../src/pages/make/told";

const missing = { pointer: "/events", required: "given", got: "", mend: "add events" };
const where = {
  pointer: "/where",
  required: "an attribute or a path below data",
  got: "status (character 1)",
  mend: "write data.status",
};
const broken = {
  pointer: "",
  required: "YAML or JSON",
  got: "something else in line 2, column 9",
  mend: "mend that line",
};

describe("what is required", () => {
  it("says what came only where the server told it", () => {
    // An empty `got` is no proof that nothing came.
    expect(words.errors.required(broken)).toBe(
      'must be YAML or JSON, got "something else in line 2, column 9"; mend that line',
    );
    expect(words.errors.required({ ...broken, got: "" })).toBe(
      "must be YAML or JSON; mend that line",
    );
  });

  it("does not name members of a text at a field", () => {
    // "add events" means nothing to who has a field called Event type.
    expect(words.errors.required(inField(missing))).toBe("must be given");
    expect(inField(where)).toBe(where);
  });
});

describe("unsaidOf", () => {
  it("leaves out what the message says already", () => {
    // The message is that of the first place.
    const message = 'definition must be YAML or JSON, got "something else in line 2, column 9"';
    expect(unsaidOf(message, [broken])).toEqual([]);
    expect(unsaidOf("/events must be given, got nothing; add events", [missing, where])).toEqual([
      where,
    ]);
    expect(unsaidOf("metric requests is at version 1", [where])).toEqual([where]);
  });
});

describe("saidIn", () => {
  it("is the place of the message, whose excerpt stands below it", () => {
    const message = 'definition must be YAML or JSON, got "something else in line 2, column 9"';
    expect(saidIn(message, [where, broken])).toBe(broken);
    expect(saidIn("metric requests is at version 1", [where])).toBeUndefined();
  });
});

describe("waitOf", () => {
  it("tells a mistake whole only where no field does", () => {
    // Each mistake is told once.
    const typed = { ...EMPTY_DRAFT, where: "status < 5" };
    expect(waitOf(where, faultsOf([where], typed, false))).toBe("Not tried yet: mend Where first.");
    expect(waitOf(missing, faultsOf([missing], EMPTY_DRAFT, false))).toBe(
      "Not tried yet: Event type must be given",
    );
    expect(waitOf({ ...missing, pointer: "/resolution" }, new Map())).toBe(
      "Not tried yet: Panes of must be given",
    );
    expect(waitOf(broken, new Map())).toContain("Not tried yet: the definition must be YAML");
    expect(waitOf({ ...where, pointer: "/keep/10s" }, new Map())).toContain(": /keep/10s must be");
    expect(waitOf(null, new Map())).toBeNull();
  });

  it("points to the text, under which all is told", () => {
    // A text as a whole has no name that could be said.
    expect(waitOf(broken, "text")).toBe("Not tried yet: mend the text first.");
  });
});

describe("a refusal to create", () => {
  const conflict = {
    status: 412,
    code: "version_conflict",
    message: "metric requests is at version 1: it exists already; read it and try again",
    errors: [{ pointer: "/version", required: "the current version, 1", got: "", mend: "" }],
  };

  it("for a name that is taken stands at the name, in the form's words", () => {
    // Nobody chose a version here.
    const told = refusalOf(conflict, "requests");
    const fault = faultsOf(told.errors ?? [], { ...EMPTY_DRAFT, name: "requests" }, true);
    expect(words.errors.required(fault.get("name") ?? missing)).toBe(
      'must be a name that no metric has yet, got "requests"; choose another',
    );
    expect([isTold(told, false), isTold(told, true)]).toEqual([true, true]);
    const down = { status: 503, code: "store_unavailable", message: "could not reach the store" };
    expect(refusalOf(down, "requests")).toBe(down);
    expect(isTold(down, true)).toBe(false);
  });

  it("without a name asks for it, and says what else is known", () => {
    // A button that cannot be pressed says no reason.
    const told = unnamed([missing]);
    const faults = faultsOf(told.errors ?? [], EMPTY_DRAFT, true);
    expect([...faults.keys()]).toEqual(["name", "type"]);
    expect(words.errors.required(inField(faults.get("name") ?? where))).toBe("must be given");
  });

  it("at a place that the form has no field for is told above it", () => {
    // Nothing is refused without a word.
    const keep = { ...conflict, code: "definition_invalid", errors: [where, broken] };
    expect([isTold(keep, false), isTold(keep, true)]).toEqual([false, true]);
  });
});
