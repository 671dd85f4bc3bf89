import { describe, expect, it } from "vitest";
import type { Alert } from "../../src/api/shapes";
import { NOTHING_SAID, QUIET_MS, type Said, saidAfter } from "../../src/lib/announce";

const fires = (...names: string[]) => names.map((name) => ({ id: name, rule: name }) as Alert);

describe("saidAfter", () => {
  it("says nothing of what fired before the page was opened", () => {
    // It stands in the header; only what is new interrupts.
    expect(saidAfter(NOTHING_SAID, fires("slow_checkout"), 0).text).toBe("");
  });

  it("names what begins to fire, once", () => {
    // A list that is read every two seconds must not be read aloud every two seconds.
    const before = saidAfter(NOTHING_SAID, [], 0);
    const said = saidAfter(before, fires("slow_checkout"), 1_000);
    expect(said.text).toBe("Slow checkout fires");
    expect(saidAfter(said, fires("slow_checkout"), 60_000)).toEqual({ ...said });
  });

  it("says the next sentence five seconds later, about all that began meanwhile", () => {
    // A storm of alerts is one sentence.
    let said: Said = saidAfter(saidAfter(NOTHING_SAID, [], 0), fires("a"), 1_000);
    said = saidAfter(said, fires("a", "b", "c", "d"), 1_000 + QUIET_MS - 1);
    expect(said.text).toBe("A fires");
    said = saidAfter(said, fires("a", "b", "c"), 1_000 + QUIET_MS);
    expect(said.text).toBe("2 more alerts fire");
    expect(said.waiting).toEqual([]);
  });
});
