import { describe, expect, it } from "vitest";
import type { LedgerMinute } from "../../src/api/shapes";
import { verdictOf } from "../../src/pages/ledger/verdict";

const minute = (change: Partial<LedgerMinute>): LedgerMinute => ({
  minute_ms: 0,
  received: 1,
  counted: 1,
  duplicate: 0,
  quarantined: 0,
  beyond_horizon: 0,
  erased: 0,
  difference: 0,
  open: false,
  sources: {},
  ...change,
});

describe("verdictOf", () => {
  it("claims no balance where no minute could be compared", () => {
    // Open minutes and those that are not kept prove nothing.
    expect(verdictOf([minute({ open: true }), minute({ difference: null })])).toEqual({
      broken: 0,
      balanced: 0,
      says: "nothing",
    });
  });

  it("tells a fault before what balances", () => {
    // One minute that is wrong outweighs all that are right.
    const items = [minute({}), minute({ difference: -2 }), minute({ difference: 3, open: true })];
    expect(verdictOf(items)).toEqual({ broken: 1, balanced: 1, says: "broken" });
    expect(verdictOf([minute({})]).says).toBe("balanced");
  });
});
