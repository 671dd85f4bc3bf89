import { describe, expect, it } from "vitest";
import { fieldsOf } from "../../src/lib/fields";
import type { TailEvent } from "../../src/live/wire";

const event = (data: string, subject: string | null = null): TailEvent => ({
  id: "1",
  type: "t",
  source: "s",
  received_ms: 0,
  at: [0, 0],
  data,
  cut: false,
  subject,
});

describe("fieldsOf", () => {
  it("tells type, fill and values of every field, also inside objects", () => {
    // What is listed is what metrics can be made of.
    const fields = fieldsOf([
      event('{"total":10,"cart":{"channel":"web"},"gift":true}', "u1"),
      event('{"total":30,"cart":{"channel":"app"},"gift":null}'),
    ]);
    expect(fields.map((f) => [f.path, f.type, f.filled])).toEqual([
      ["subject", "text", 0.5],
      ["data.total", "number", 1],
      ["data.cart.channel", "text", 1],
      ["data.gift", "truth", 0.5],
    ]);
    expect(fields[1]?.values).toBe("p50 10 · max 30");
    expect(fields[2]?.values).toBe("web 50 %, app 50 %");
  });

  it("survives data that was cut, is no JSON, or names a prototype", () => {
    // Events are written by strangers.
    const cut = { ...event('{"a":1'), cut: true };
    const fields = fieldsOf([cut, event("nonsense"), event('{"__proto__":{"x":1}}')]);
    expect(fields.map((f) => f.path)).toEqual(["data.__proto__.x"]);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it("says how many values there are when they are many", () => {
    // Twenty values are no list to read.
    const fields = fieldsOf(Array.from({ length: 30 }, (_, n) => event(`{"user":"u${n}"}`)));
    expect(fields[0]?.values).toBe("30 different");
  });
});
