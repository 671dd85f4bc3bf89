/**
 * A server of one query for tests: it has a history of answers and tells, like the hub,
 * what changed since any revision. Seeded, so that a failure can be repeated.
 */
import type {
  Cell,
  Correction,
  WireAnswer,
  WireColumns,
  WireDelta,
  WireName,
} from "../../src/live/wire";

/** Returns a seeded source of numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Point {
  value: Cell;
  count: Cell;
  rev: number;
}

interface Line {
  name: WireName;
  addedRev: number;
  points: Map<number, Point>;
}

const STEP_MS = 10_000;
const WINDOWS = 12;
const LATENESS_MS = 40_000;

export class TestServer {
  rev = 1;
  epoch: number;
  private nowMs = 1_795_181_400_000;
  private readonly lines = new Map<number, Line>();
  private readonly removed = new Map<number, number>();
  private readonly timeRevs = new Map<number, number>();
  private late: readonly Correction[] = [];
  private lateRev = 0;
  private nextK = 0;

  constructor(
    private readonly random: () => number,
    epoch = 7,
  ) {
    this.epoch = epoch;
    this.add();
    this.add();
  }

  /** Lets something happen: time passes, values change, series come and go. */
  step(): void {
    this.rev += 1;
    if (this.random() < 0.5) this.nowMs += STEP_MS;
    if (this.random() < 0.1) this.add();
    if (this.random() < 0.05 && this.lines.size > 1) this.drop();
    const times = this.times();
    if (this.random() < 0.2) this.correct(times[2] ?? 0);
    for (const t of times) if (!this.timeRevs.has(t)) this.timeRevs.set(t, this.rev);
    for (const line of this.lines.values()) {
      for (const t of times) {
        if (!line.points.has(t) || this.random() < 0.2) {
          const unknown = this.random() < 0.2;
          const value = unknown ? null : Math.round(this.random() * 1_000);
          line.points.set(t, { value, count: unknown ? 0 : 3, rev: this.rev });
        }
      }
    }
  }

  /** Returns the whole answer. */
  snapshot(): WireAnswer {
    const times = this.times();
    return {
      metric: { name: "m", version: 1, unit: "ms", resolution_ms: STEP_MS, lateness_ms: 0 },
      epoch: this.epoch,
      rev: this.rev,
      final_to_ms: this.finalTo(),
      t_ms: times,
      of: this.lines.size,
      corrections: this.told(times),
      series: [...this.lines.values()].map((l) => ({ ...l.name, ...this.columns(l, times) })),
    };
  }

  /** Returns what changed after a revision. */
  since(prev: number): WireDelta {
    const all = this.times();
    const lines = [...this.lines.values()];
    const revOf = (line: Line, t: number) => line.points.get(t)?.rev ?? this.timeRevs.get(t) ?? 0;
    const changed = all.filter(
      (t) => (this.timeRevs.get(t) ?? 0) > prev || lines.some((l) => revOf(l, t) > prev),
    );
    return {
      epoch: this.epoch,
      prev,
      rev: this.rev,
      final_to_ms: this.finalTo(),
      first_t_ms: all[0] ?? null,
      t_ms: changed,
      add: lines.filter((l) => l.addedRev > prev).map((l) => l.name),
      del: [...this.removed].filter(([, rev]) => rev > prev).map(([k]) => k),
      series: lines
        .filter((l) => changed.some((t) => revOf(l, t) > prev) || l.addedRev > prev)
        .map((l) => this.columns(l, changed)),
      ...(this.lateRev > prev ? { corrections: this.told(all) } : {}),
      of: this.lines.size,
    };
  }

  /** Tells of a window what late events changed, in place of what was told of it before. */
  private correct(t_ms: number): void {
    const others = this.late.filter((c) => c.t_ms !== t_ms);
    this.late = [
      {
        ...{ t_ms, k: 0, was: 1, was_low: 1, was_high: 1, is: 2, is_low: 2, is_high: 2 },
        ...{ events: this.rev, late_ms: 5 },
      },
      ...others,
    ];
    this.lateRev = this.rev;
  }

  private told(times: readonly number[]): readonly Correction[] {
    return this.late.filter((c) => c.t_ms >= (times[0] ?? 0));
  }

  private add(): void {
    const k = this.nextK++;
    const name = { k, by: { region: `r${k}` }, slot: k };
    this.lines.set(k, { name, addedRev: this.rev, points: new Map() });
  }

  private drop(): void {
    const k = this.lines.keys().next().value as number;
    this.lines.delete(k);
    this.removed.set(k, this.rev);
  }

  private finalTo(): number {
    return this.nowMs - LATENESS_MS;
  }

  private times(): number[] {
    return Array.from({ length: WINDOWS }, (_, at) => this.nowMs - (WINDOWS - 1 - at) * STEP_MS);
  }

  private columns(line: Line, times: readonly number[]): WireColumns {
    const points = times.map((t) => line.points.get(t));
    const value = points.map((p) => p?.value ?? null);
    return {
      k: line.name.k,
      value,
      low: value,
      high: value.map((v) => (v === null ? null : v + 1)),
      count: points.map((p) => p?.count ?? null),
      state: times.map((t) => (t <= this.finalTo() ? "f" : "p")).join(""),
    };
  }
}
