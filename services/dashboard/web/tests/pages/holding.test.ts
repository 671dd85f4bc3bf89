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
});
