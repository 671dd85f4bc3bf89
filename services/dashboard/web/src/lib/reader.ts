/**
 * A list that is read again and again while somebody looks at it, once for all who do.
 *
 * A reading that fails leaves the last answer where it is, and says why beside it.
 */
import { type ReadonlySignal, signal } from "@preact/signals";
import type { Problem } from "../live/wire";

/** The newest answer, or null before the first; and what went wrong since. */
export interface Reading<T> {
  readonly items: readonly T[] | null;
  readonly problem: Problem | null;
}

/** What a reader needs of the world around it. */
export interface World<T> {
  load(): Promise<readonly T[]>;
  /** Returns what an error says of itself. */
  problemOf(error: unknown): Problem;
  /** Whether reading is of use now: nobody reads for a tab that is hidden. */
  ready(): boolean;
  readonly everyMs: number;
}

/** One such list. */
export class Reader<T> {
  readonly #state = signal<Reading<T>>({ items: null, problem: null });
  #watchers = 0;
  #timer: ReturnType<typeof setInterval> | null = null;
  #turn = 0;
  #busy = false;
  #again = false;

  constructor(readonly world: World<T>) {}

  /** What is held. */
  get state(): ReadonlySignal<Reading<T>> {
    return this.#state;
  }

  /** Reads from now on, until the function that it returns is called by each who watches. */
  watch(): () => void {
    this.#watchers += 1;
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.tick(), this.world.everyMs);
      this.tick();
    }
    let watching = true;
    return () => {
      if (!watching) return;
      watching = false;
      this.#watchers -= 1;
      if (this.#watchers > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    };
  }

  /** Reads if somebody watches and no reading is under way. */
  tick(): void {
    if (this.#watchers > 0 && !this.#busy && this.world.ready()) void this.read();
  }

  /** Reads because something changed; after the reading that is under way, if there is one. */
  renew(): void {
    this.#again = this.#busy;
    this.tick();
  }

  /** Reads now, such as after something was written; an answer that is older is dropped. */
  async read(): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    this.#busy = true;
    const before = this.#state.value;
    const after = await this.world.load().then(
      (items): Reading<T> => ({ items, problem: null }),
      (error: unknown): Reading<T> => ({
        items: before.items,
        problem: this.world.problemOf(error),
      }),
    );
    if (turn !== this.#turn) return;
    this.#busy = false;
    this.#state.value = after;
    if (this.#again) {
      this.#again = false;
      this.tick();
    }
  }

  /** Forgets everything: it was somebody else's. */
  forget(): void {
    this.#turn += 1;
    this.#busy = false;
    this.#state.value = { items: null, problem: null };
    this.tick();
  }
}
