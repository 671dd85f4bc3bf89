import { describe, expect, it } from "vitest";
import type { Alert, AlertDetail, Rule, Silence } from "../../src/api/shapes";
import { definitionOf, isWhole } from "../../src/pages/alerts/channel";
import { askedOf, whatOf } from "../../src/pages/alerts/silence";
import { timelineOf } from "../../src/pages/alerts/timeline";

describe("a silence", () => {
  const rule = { name: "slow_checkout", by: ["region", "data.route", "user"] } as unknown as Rule;
  const labels = { team: "shop", region: "it's", "data.route": "/pay", user: null };
  const alert = { rule: "slow_checkout", labels } as unknown as Alert;

  it("of an alert is of its rule and its own series", () => {
    // Labels of the rule itself are the same for all of its alerts.
    expect(askedOf(alert, rule)).toEqual({
      rule: "slow_checkout",
      where: "region = 'it''s' and data.route = '/pay' and user is null",
    });
  });

  it("of an alert without dimensions, or of a rule that is gone, is of the rule", () => {
    expect(askedOf(alert, null).where).toBe("");
  });

  it("says what it hides", () => {
    const where = [
      ["region", "=", "eu"],
      ["route", "in", ["/pay", null]],
    ];
    const silence = { rule: "slow_checkout", where } as unknown as Silence;
    expect(whatOf(silence)).toBe("Slow checkout · region = eu · route in /pay, (none)");
    expect(whatOf({ ...silence, rule: null, where: [] })).toBe("any rule");
  });
});

describe("a channel", () => {
  const draft = {
    name: "oncall",
    way: "webhook",
    url: "",
    secret: "oncall",
    follow: false,
  } as const;

  it("is stored as YAML, its secret by its name", () => {
    const hook = { ...draft, url: " https://hooks.example.com/weir " };
    expect(definitionOf(hook)).toBe(
      'kind: channel\nname: oncall\nwebhook:\n  url: "https://hooks.example.com/weir"\n  secret: "secret://oncall"\n',
    );
    expect(definitionOf({ ...draft, way: "apprise", secret: "secret://slack", follow: true })).toBe(
      'kind: channel\nname: oncall\napprise: "secret://slack"\nfollow: all\n',
    );
  });

  it("keeps whatever was typed one text", () => {
    // The server's check says what is wrong with it.
    const text = definitionOf({ ...draft, way: "apprise", name: "a: b\nkind: key", secret: '"' });
    expect(text.split("\n")).toHaveLength(4);
    expect(text).toContain('name: "a: b\\nkind: key"');
  });

  it("is whole with a secret, and an address where it needs one", () => {
    expect(isWhole(draft)).toBe(false);
    expect(isWhole({ ...draft, url: "https://a.example.com" })).toBe(true);
    expect(isWhole({ ...draft, way: "apprise" })).toBe(true);
    expect(isWhole({ ...draft, way: "apprise", secret: " " })).toBe(false);
    expect(isWhole({ ...draft, way: "apprise", name: "" })).toBe(false);
  });
});

describe("what people did", () => {
  const told = (happened: Partial<AlertDetail["happened"][number]>[]) =>
    timelineOf({
      happened: happened.map((one) => ({ kind: "", at_ms: 0, ...one })),
      ...{
        metric: "latency",
        aggregate: "count",
        unit: "",
        limit: 1,
        verdict: "confirmed",
        reason: null,
      },
    } as AlertDetail);

  it("stands in an alert's history, with what failed and why", () => {
    const lines = told([
      { kind: "silenced", note: "s_1, s_2" },
      { kind: "acknowledged", by: "key:a", note: "mine" },
      { kind: "given_back", by: "key:a" },
      { kind: "failed", channel: "hook", status: 503, tries: 1 },
      { kind: "failed", channel: "hook", why: "nothing could be reached there" },
    ]);
    expect(lines.map(({ text, answer }) => `${text} ${answer}`.trim())).toEqual([
      "Told to nobody: silenced by s_1, s_2",
      "Taken on by key:a: mine",
      "Given back by key:a",
      "Not taken by 503",
      "Not taken by nothing could be reached there",
    ]);
  });
});
