import { describe, expect, it } from "vitest";
import { modelOf } from "../../src/live/model";
import type { WireAnswer } from "../../src/live/wire";
import { emptyTop, topTableOf } from "../../src/pages/board/top-rows";

type Columns = Partial<WireAnswer["series"][number]>;

/** Returns the model of some series over two windows, with these columns. */
const modelWith = (...series: Columns[]) => throughTo(null, ...series);

/** Returns the same, where all is counted up to an instant. */
const throughTo = (throughMs: number | null, ...series: Columns[]) =>
  modelOf({
    metric: { name: "latency", version: 1, unit: "ms", resolution_ms: 10_000, lateness_ms: 0 },
    epoch: 1,
    rev: 1,
    final_to_ms: throughMs,
    t_ms: [10_000, 20_000],
    of: series.length,
    series: series.map((columns, k) => ({ k, by: {}, slot: k, state: "ff", ...columns })),
  });

const eu = {
  by: { region: "eu" },
  value: [500, 617.2],
  low: [500, 592],
  high: [500, 648],
  count: [9, 11_402],
};
const us = {
  by: { region: "us" },
  value: [300, null],
  low: [300, null],
  high: [300, null],
  count: [7, 0],
};
const others = { other: true, value: [900, 900], low: [900, 900], high: [900, 900], count: [1, 1] };

describe("topTableOf", () => {
  it("shows one window, each series with its ends", () => {
    // Of few values a percentile is one of them, and says that it is exact.
    const asia = { value: [200, 100], low: [200, 100], high: [200, 100], count: [4, 2] };
    const told = (throughMs: number | null) => {
      const model = throughTo(throughMs, us, { by: { region: "asia" }, ...asia }, eu);
      const { rows, estimated } = topTableOf(model, "p95", "ms");
      expect(estimated).toBe(true);
      return rows.map(({ name, value, within, events }) => [name, value, within, events]);
    };
    expect(told(20_000)).toEqual([
      ["eu", "617 ms", "592 – 648 ms", "11.4 k"],
      ["asia", "100 ms", "exact", "2"],
    ]);
    // Of the open one each has another part: the one before, all of it.
    const before = [
      ["eu", "500 ms", "exact", "9"],
      ["us", "300 ms", "exact", "7"],
      ["asia", "200 ms", "exact", "4"],
    ];
    expect(told(19_999)).toEqual(before);
    // Where none is over yet, the newest.
    expect(told(9_999)).toEqual(told(20_000));
  });

  it("goes back past what is not known, and not past what is empty", () => {
    const told = (count: (number | null)[]) =>
      topTableOf(throughTo(20_000, { ...us, count }), "p95", "ms").rows.map(({ value }) => value);
    expect(told([7, null])).toEqual(["300 ms"]);
    // What was largest long ago would stand there as if it were now.
    expect(told([7, 0])).toEqual([]);
  });

  it("puts what has no series of its own last, without a bar", () => {
    // However large: it would make all others look small.
    const { rows } = topTableOf(throughTo(10_000, others, us, eu), "p95", "ms");
    expect(rows.map(({ share }) => share)).toEqual([1, 300 / 500, 0]);
  });

  it("keeps the column of ends where all is exact for now, of sketches alone", () => {
    // A column that comes and goes would move the others.
    const one = modelWith(us);
    expect(
      ["p95", "distinct(user)", "theta(user)"].map((a) => topTableOf(one, a, "").estimated),
    ).toEqual([true, true, true]);
    expect(["count", "max", "avg"].map((a) => topTableOf(one, a, "").estimated)).toEqual([
      false,
      false,
      false,
    ]);
  });

  it("tells the ends of a count beyond the most series", () => {
    // What is counted as other may belong to it.
    const capped = { ...us, value: [3, 7], low: [3, 7], high: [3, 9], count: [3, 7] };
    const { rows, estimated } = topTableOf(modelWith(capped), "count", "");
    expect([estimated, rows[0]?.within]).toEqual([true, "7 – 9"]);
  });
});

describe("emptyTop", () => {
  it("tells what is not known from what is not there", () => {
    // A rebuild, or a cap, is no sign that nothing came.
    const lost = { value: [null, null], low: [null, null], high: [null, null] };
    const said = (columns: Columns) => emptyTop(modelWith({ ...lost, ...columns }), "p95", "5m")[0];
    expect(said({ count: [0, 0] })).toBe("No events matched in 5m");
    expect(said({ count: [null, null], state: "rr" })).toBe("Rebuilding");
    expect(said({ count: [3, 4] })).toBe("Too few events for p95");
    expect(said({ count: [12_431, 4] })).toBe("Not known");
    expect(emptyTop(modelWith(), "p95", "5m")[0]).toBe("Nothing counted in 5m");
  });
});
