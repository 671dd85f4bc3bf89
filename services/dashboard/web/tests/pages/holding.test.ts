import { describe, expect, it } from "vitest";
import type { Status } from "../../src/api/shapes";
import { Holding } from "../../src/pages/status/holding";

const none = { left_ms: null, partition: null, kept_ms: null, oldest_ms: null, warning: null };
const shown = (change: Partial<Status>) =>
  JSON.stringify(
    Holding({
      status: {
        holding: null,
        lag: { records: 0, ms: 0 },
        log: none,
        quarantine: none,
        dedup_gap: null,
        ...change,
      } as Status,
    }),
  );

describe("Holding", () => {
  it("warns of what the log, or quarantine, is about to lose, in the server's words", () => {
    const said = { ...none, warning: "events are deleted in 5 h" };
    expect(shown({ log: said })).toContain('"data-testid":"log-warning","children":"events are');
    expect(shown({ quarantine: said })).toContain(
      '"data-testid":"quarantine-warning","children":"events are',
    );
  });

  it("warns of nothing while there is time", () => {
    expect(shown({})).not.toContain("warning");
  });

  it("says that the log deletes nothing only where that is known", () => {
    // Nothing is known before somebody has looked; and where records are kept for ever, somebody
    // may have deleted some.
    const clear = "The log deletes nothing that is not counted.";
    const unknown = "is not known yet";
    expect(shown({ log: { ...none, oldest_ms: 1 } })).toContain(clear);
    expect(shown({ log: none })).toContain(unknown);
    expect(shown({ log: none })).not.toContain(clear);
    const gone = { ...none, left_ms: 0, oldest_ms: 1, warning: "events have been deleted" };
    expect(shown({ log: gone })).not.toContain(clear);
    expect(shown({ log: gone })).toContain("for 0.0 s more; it keeps an event for ever.");
    expect(shown({ log: { ...none, warning: "events are deleted" } })).toContain(unknown);
  });
});
