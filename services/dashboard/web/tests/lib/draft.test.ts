import { describe, expect, it } from "vitest";
import {
  choicesOf,
  dimensionsOf,
  EMPTY_DRAFT,
  faultsOf,
  fieldOf,
  fitting,
  isStillIn,
  nameFor,
  scalar,
  triedOf,
  typedOf,
  yamlOf,
} from "../../src/lib/draft";

describe("yamlOf", () => {
  it("spells an allowed lateness where there is one", () => {
    // Without one the server's own is meant.
    expect(yamlOf({ ...EMPTY_DRAFT, allowed_lateness: " 30s " })).toContain(
      'allowed_lateness: "30s"\n',
    );
    expect(yamlOf(EMPTY_DRAFT)).not.toContain("allowed_lateness");
  });

  it("spells a definition as people write it", () => {
    // The form and the text are the same thing.
    const draft = {
      ...EMPTY_DRAFT,
      name: "order_total",
      type: "order.placed",
      where: "data.total > 10 and data.channel = 'web'",
      value: "data.total",
      unit: "EUR",
      by: "data.channel, data.country",
      aggregates: ["count", "p95", "distinct(subject)"],
    };
    expect(yamlOf(draft)).toBe(
      [
        "kind: metric",
        "name: order_total",
        "events: {type: order.placed}",
        "where: \"data.total > 10 and data.channel = 'web'\"",
        "value: data.total",
        "unit: EUR",
        "by: [data.channel, data.country]",
        "aggregates: [count, p95, distinct(subject)]",
        "resolution: 10s",
        "",
      ].join("\n"),
    );
  });

  it("quotes whatever YAML would read as something else", () => {
    // `no` is a word here, not false; a colon or a brace must not open anything.
    for (const text of ["no", "true", "1.5", "a: b", "{x}", "*ref", "%", 'say "hi"', "a\nb"]) {
      expect(scalar(text)).toBe(JSON.stringify(text));
    }
    expect(scalar("web.request")).toBe("web.request");
  });
});

describe("dimensionsOf", () => {
  it("leaves commas in brackets and in quotes to what is computed", () => {
    // A function may take several operands, and a text may hold any sign.
    const computed = "split_part(data.path, ',', 2) as part";
    const by = ` data.region, ${computed} ,, lower(data."a,b") as ab`;
    const found = ["data.region", computed, 'lower(data."a,b") as ab'];
    expect(dimensionsOf({ ...EMPTY_DRAFT, by })).toEqual(found);
    expect(yamlOf({ ...EMPTY_DRAFT, by })).toContain(`by: [data.region, "${computed}", "lower(`);
    expect(dimensionsOf({ ...EMPTY_DRAFT, by: "lower(data.a" })).toEqual(["lower(data.a"]);
  });
});

describe("fitting", () => {
  it("drops averages when there is no value to average", () => {
    // The form cannot ask for what the check would refuse.
    const draft = { ...EMPTY_DRAFT, value: "", aggregates: ["avg", "p95"] };
    expect(fitting(draft).aggregates).toEqual(["count"]);
    expect(choicesOf(draft)).not.toContain("avg");
  });
});

describe("nameFor", () => {
  it.each([
    ["order.placed", "data.total", "order_placed_total"],
    ["com.acme.http.request", "", "http_request"],
    ["9lives.Cat-Came", "", "lives_cat_came"],
  ])("makes of %s and %s the name %s", (type, field, name) => {
    // A name is [a-z][a-z0-9_]{0,63}.
    expect(nameFor(type, field)).toBe(name);
    expect(name).toMatch(/^[a-z][a-z0-9_]{0,63}$/);
  });
});

describe("fieldOf", () => {
  it("finds the field that an error belongs to", () => {
    // A fault is told where it was typed.
    expect(fieldOf("/where")).toBe("where");
    expect(fieldOf("/events/type")).toBe("type");
    expect(fieldOf("/aggregates/1")).toBe("aggregates");
    expect(fieldOf("/keep/10s")).toBeNull();
  });
});

const missing = { pointer: "/events", required: "given", got: "", mend: "add events" };
const badName = { pointer: "/name", required: "a name", got: "A b", mend: "a_b would do" };
const refused = (...errors: (typeof missing)[]) => ({ ok: false, errors });

describe("faultsOf", () => {
  it("says nothing of fields that are still empty, until asked", () => {
    // An untouched form has no mistakes; a refused one has.
    expect(faultsOf([missing], EMPTY_DRAFT, false).size).toBe(0);
    expect(faultsOf([missing], EMPTY_DRAFT, true).get("type")).toBe(missing);
    const typed = { ...EMPTY_DRAFT, name: "A b" };
    expect([...faultsOf([missing, badName], typed, false).keys()]).toEqual(["name"]);
  });
});

describe("triedOf", () => {
  it("tries the rest of a draft whose name is wrong", () => {
    // A name changes nothing of what is counted.
    const draft = { ...EMPTY_DRAFT, name: "A b", type: "t" };
    const tried = triedOf(draft, yamlOf(draft), refused(badName));
    expect(tried).toEqual({ text: yamlOf({ ...draft, name: "" }), valid: true, why: null });
  });

  it("tries nothing while a change is being checked", () => {
    // What the check said was of another text: this one may be wrong elsewhere.
    const tried = triedOf(EMPTY_DRAFT, "text", { ...refused(badName), old: true });
    expect(tried).toEqual({ text: "text", valid: false, why: null });
  });

  it("says why nothing can be tried", () => {
    // The reason is that of the first field that matters.
    const tried = triedOf(EMPTY_DRAFT, "text", refused(badName, missing));
    expect(tried).toEqual({ text: "text", valid: false, why: missing });
  });
});

describe("what was typed", () => {
  const begun = { ...EMPTY_DRAFT, type: "order.placed", name: "order_placed" };

  it("is each field that is another than it was begun", () => {
    // Spaces at the ends are none of it, and aggregates come with the value.
    const draft = { ...begun, where: "data.a > 1", type: "order.placed ", aggregates: ["avg"] };
    expect(typedOf(begun, begun)).toEqual([]);
    expect(typedOf(begun, draft)).toEqual(["where"]);
    expect(typedOf(begun, { ...draft, resolution: "1m", allowed_lateness: "5m" })).toEqual([
      "where",
      "resolution",
      "allowed_lateness",
    ]);
  });

  it("is in another draft as it is, and as a dimension beside others", () => {
    const draft = { ...begun, where: "data.a > 1", by: "data.b" };
    expect(isStillIn({ ...draft, by: "data.c, data.b" }, draft, "by")).toBe(true);
    expect(isStillIn({ ...draft, by: "data.c" }, draft, "by")).toBe(false);
    expect(isStillIn({ ...draft, value: "data.x" }, draft, "where")).toBe(true);
    expect(isStillIn(begun, draft, "where")).toBe(false);
  });
});
