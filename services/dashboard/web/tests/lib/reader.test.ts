import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Reader } from "../../src/lib/reader";
import type { Problem } from "../../src/live/wire";

const AWAY = { status: 0, code: "unreachable", message: "could not reach" } as Problem;

interface Call {
  answer(items: readonly string[]): void;
  fail(): void;
}

let calls: Call[] = [];
let ready = true;

const load = () =>
  new Promise<readonly string[]>((answer, reject) => {
    calls.push({ answer, fail: () => reject(new Error("away")) });
  });
const reader = () =>
  new Reader({ load, problemOf: () => AWAY, ready: () => ready, everyMs: 2_000 });
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  calls = [];
  ready = true;
});
afterEach(() => vi.useRealTimers());

describe("Reader", () => {
  it("reads once for all who watch, and stops with the last of them", async () => {
    // The header and the page look at the same list.
    const list = reader();
    const leave = [list.watch(), list.watch()];
    expect(calls.length).toBe(1);
    calls[0]?.answer(["a"]);
    await settle();
    expect(list.state.value.items).toEqual(["a"]);
    leave[0]?.();
    leave[0]?.();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(calls.length).toBe(2);
    leave[1]?.();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(calls.length).toBe(2);
  });

  it("reads once more when something changes while it reads", async () => {
    // The answer under way may be from before the change; two at once would race.
    const list = reader();
    list.watch();
    list.renew();
    list.renew();
    expect(calls.length).toBe(1);
    calls[0]?.answer(["a"]);
    await settle();
    expect(calls.length).toBe(2);
    calls[1]?.answer(["b"]);
    await settle();
    expect(list.state.value.items).toEqual(["b"]);
    expect(calls.length).toBe(2);
    list.renew();
    expect(calls.length).toBe(3);
  });

  it("keeps the last answer when a reading fails, and says why", async () => {
    // A list that empties itself when the server is away would say that nothing fires.
    const list = reader();
    list.watch();
    calls[0]?.answer(["a"]);
    await vi.advanceTimersByTimeAsync(2_000);
    calls[1]?.fail();
    await settle();
    expect(list.state.value).toEqual({ items: ["a"], problem: AWAY });
    await vi.advanceTimersByTimeAsync(2_000);
    calls[2]?.answer([]);
    await settle();
    expect(list.state.value).toEqual({ items: [], problem: null });
  });

  it("asks nothing while an answer is under way, nor for a hidden tab", async () => {
    // A slow server must not be asked the same in parallel.
    const list = reader();
    list.watch();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(calls.length).toBe(1);
    calls[0]?.answer([]);
    ready = false;
    await vi.advanceTimersByTimeAsync(6_000);
    expect(calls.length).toBe(1);
  });

  it("drops an answer that was asked before the newest question, or for somebody else", async () => {
    // What was read before a rule was saved must not hide the rule again.
    const list = reader();
    list.watch();
    void list.read();
    calls[1]?.answer(["new"]);
    calls[0]?.answer(["old"]);
    await settle();
    expect(list.state.value.items).toEqual(["new"]);
    void list.read();
    list.forget();
    calls[2]?.answer(["another tenant's"]);
    await settle();
    expect(list.state.value.items).toBeNull();
  });
});
