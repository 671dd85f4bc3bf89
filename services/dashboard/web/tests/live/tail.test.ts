import { describe, expect, it } from "vitest";
import {
  EMPTY_TAIL,
  FATE_MS,
  fateOf,
  MAX_ROWS,
  shownTail,
  tailAfter,
  tailForgotten,
  tailRate,
  wholeOf,
  withFates,
} from "../../src/live/tail";
import type { Fate, ServerFrame, TailEvent } from "../../src/live/wire";

const event = (offset: number): TailEvent => ({
  id: `o-${offset}`,
  type: "order.placed",
  source: "shop",
  received_ms: offset,
  at: [0, offset],
  data: "{}",
  cut: false,
});
const fate = (offset: number, what = "counted"): Fate => ({
  id: `o-${offset}`,
  at: [0, offset],
  fate: what,
});
const frame = (events: TailEvent[], fates: Fate[] = [], of = events.length) =>
  ({ op: "tail", key: "t", shown: events.length, of, events, fates }) as Extract<
    ServerFrame,
    { op: "tail" }
  >;

describe("tailAfter", () => {
  it("shows the newest first", () => {
    // Whoever has just sent something looks at the top.
    const tail = tailAfter(
      tailAfter(EMPTY_TAIL, frame([event(1), event(2)]), 0),
      frame([event(3)]),
      0,
    );
    expect(tail.rows.map((row) => row.event.id)).toEqual(["o-3", "o-2", "o-1"]);
  });

  it("ends the same whether the fate comes after or before its event", () => {
    // Two streams, no order between them.
    const after = tailAfter(tailAfter(EMPTY_TAIL, frame([event(1)]), 0), frame([], [fate(1)]), 0);
    const before = tailAfter(tailAfter(EMPTY_TAIL, frame([], [fate(1)]), 0), frame([event(1)]), 0);
    expect(after.rows).toEqual(before.rows);
    expect(after.rows[0]?.fate?.fate).toBe("counted");
  });

  it("shows an event once however often it is told", () => {
    // A place in the log is one event.
    const twice = tailAfter(tailAfter(EMPTY_TAIL, frame([event(1)]), 0), frame([event(1)]), 0);
    expect(twice.rows).toHaveLength(1);
  });

  it("is bounded, and drops the oldest", () => {
    // A tab left open for a week does not grow.
    const many = Array.from({ length: MAX_ROWS + 5 }, (_, at) => event(at));
    const tail = tailAfter(EMPTY_TAIL, frame(many), 0);
    expect(tail.rows).toHaveLength(MAX_ROWS);
    expect(tail.rows.at(-1)?.event.id).toBe("o-5");
  });
});

describe("tailRate", () => {
  it("tells what is shown of what was accepted, a second", () => {
    // "shown 20 of 42 a second" over the last five seconds.
    let tail = EMPTY_TAIL;
    for (let s = 0; s <= 4; s += 1) {
      tail = tailAfter(tail, frame([event(s)], [], 10), s * 1_000);
    }
    expect(tailRate(tail, 5_000)).toEqual({ shown: 1, of: 10 });
    expect(tailRate(tail, 60_000)).toEqual({ shown: 0, of: 0 });
  });
});

describe("tailRate of a filtered tail", () => {
  it("tells what arrives even where nothing passes, over one span", () => {
    // A part is never more than the whole that it is shown with.
    let all = EMPTY_TAIL;
    for (let s = 0; s <= 4; s += 1) all = tailAfter(all, frame([event(s)], [], 4), s * 1_000);
    expect(tailRate(EMPTY_TAIL, 5_000, all)).toEqual({ shown: 0, of: 4 });
    const late = tailAfter(EMPTY_TAIL, frame([event(3), event(4)]), 4_500);
    expect(tailRate(late, 5_000, all)).toEqual({ shown: 1, of: 4 });
    expect(tailRate(late, 5_000, EMPTY_TAIL)).toEqual({ shown: 2, of: 2 });
  });
});

describe("fateOf", () => {
  const tail = tailAfter(EMPTY_TAIL, frame([event(1)]), 0);
  const told = (of: typeof tail, throughMs: number | null) =>
    of.rows.map((row) => fateOf(row, throughMs));

  it("is not known once counting has passed an event by without a word", () => {
    // However old: while counting is behind, it still waits to be counted.
    expect(told(tail, null)).toEqual(["counting"]);
    expect(told(tail, 1 + FATE_MS)).toEqual(["counting"]);
    expect(told(tail, 2 + FATE_MS)).toEqual(["unknown"]);
  });

  it("is not known of what was shown before the connection was lost, unless it is told", () => {
    // The server begins anew, and remembers nothing of what it has shown.
    const again = tailAfter(tailForgotten(tail), frame([event(2)]), 0);
    expect(told(again, null)).toEqual(["counting", "unknown"]);
    expect(told(withFates(tail, again), null)).toEqual(["unknown"]);
    const late = tailAfter(again, frame([], [fate(1)]), 0);
    expect(told(late, null)).toEqual(["counting", "counted"]);
    expect(told(withFates(again, late), 60_000)).toEqual(["unknown", "counted"]);
  });
});

describe("withFates", () => {
  it("tells what became of events that stand still, and moves none", () => {
    // Who reads an open event still learns that it was counted.
    const shown = tailAfter(EMPTY_TAIL, frame([event(1)]), 0);
    const newest = tailAfter(tailAfter(shown, frame([event(2)]), 0), frame([], [fate(1)]), 0);
    const after = withFates(shown, newest);
    expect(after.rows.map((row) => [row.event.id, row.fate?.fate])).toEqual([["o-1", "counted"]]);
  });
});

describe("shownTail", () => {
  const first = tailAfter(EMPTY_TAIL, frame([event(1)]), 0);
  const second = tailAfter(tailAfter(first, frame([event(2)]), 0), frame([], [fate(1)]), 0);

  it("stands still while it is held, and goes on with all that came", () => {
    // A pause is of what one sees: what arrives is kept.
    const held = shownTail(first, second, true);
    expect(held.rows.map((row) => [row.event.id, row.fate?.fate])).toEqual([["o-1", "counted"]]);
    expect(second.total - held.total).toBe(1);
    expect(shownTail(held, second, false)).toBe(second);
  });

  it("shows nothing of another filter, held or not", () => {
    // A held tail that is filtered is held still, and empty until one resumes.
    const emptied = shownTail(second, EMPTY_TAIL, true);
    expect(emptied.rows).toEqual([]);
    expect(shownTail(emptied, first, true).rows).toEqual([]);
    expect(shownTail(emptied, first, false).rows).toHaveLength(1);
  });
});

describe("wholeOf", () => {
  it("lays out data, and leaves what would change as it came", () => {
    // 2^53 + 1 is no number of this language.
    const nested = JSON.parse(wholeOf({ ...event(1), data: '{"a": {"b": [1]}}' }));
    expect(nested).toMatchObject({ id: "o-1", data: { a: { b: [1] } } });
    for (const data of ['{"a":9007199254740993}', '{"a":'])
      expect(JSON.parse(wholeOf({ ...event(1), data })).data).toBe(data);
  });
});
