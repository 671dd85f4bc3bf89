import { describe, expect, it } from "vitest";
import type { Backtest, BacktestGroup } from "../../src/api/schema";
import { stripsOf } from "../../src/lib/strips";

const test = (groups: readonly BacktestGroup[]): Backtest => ({
  fired: 0,
  firing_ms: 0,
  longest_ms: 0,
  coverage: 1,
  matched_series: groups.length,
  from_ms: 1_000,
  to_ms: 2_000,
  groups: [...groups],
  capped: false,
  sweep: [],
  not_simulated: [],
});
const calm = (region: string): BacktestGroup => ({ by: { region }, spans: [] });

describe("stripsOf", () => {
  it("lays spans on the time of the test", () => {
    // In shares, whatever the width; what sticks out is cut.
    const spans = [
      { from_ms: 1_100, to_ms: 1_200, state: "pending" as const },
      { from_ms: 1_200, to_ms: 1_500, state: "firing" as const },
      { from_ms: 1_900, to_ms: 2_400, state: "no_data" as const },
    ];
    const [strip] = stripsOf(test([{ by: { region: "eu", route: null }, spans }])).strips;
    expect(strip?.name).toBe("eu · –");
    expect(strip?.pieces.map(({ from, width }) => [from, Number(width.toFixed(6))])).toEqual([
      [0.1, 0.1],
      [0.2, 0.3],
      [0.9, 0.1],
    ]);
    expect([strip?.fired, strip?.firingMs, strip?.pendingMs, strip?.silentMs]).toEqual([
      1, 300, 100, 500,
    ]);
  });

  it("shows what fired first, and counts the quiet ones that are left out", () => {
    // Fifty groups come at most; twelve strips are read.
    const fired = { from_ms: 1_200, to_ms: 1_300, state: "firing" as const };
    const many = Array.from({ length: 20 }, (_, nth) => calm(`r${String(nth).padStart(2, "0")}`));
    const { strips, more } = stripsOf(test([...many, { by: { region: "us" }, spans: [fired] }]));
    expect(strips.slice(0, 2).map(({ name }) => name)).toEqual(["us", "r00"]);
    expect([strips.length, more]).toEqual([12, 9]);
  });
});
