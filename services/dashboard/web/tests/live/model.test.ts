import { describe, expect, it } from "vitest";
import { column, finalized, folded, type Model, modelOf } from "../../src/live/model";
import { seeded, TestServer } from "./server";

/** Returns everything that a model says, in a form that can be compared. */
function said(model: Model) {
  const { series, tMs, ...rest } = model;
  const lines = [...series.values()]
    .sort((a, b) => a.k - b.k)
    .map((s) => ({
      ...s,
      value: [...s.value],
      low: [...s.low],
      high: [...s.high],
      count: [...s.count],
    }));
  return { ...rest, tMs: [...tMs], lines };
}

function mustFold(model: Model, server: TestServer, prev = model.rev): Model {
  const { model: next, why } = folded(model, server.since(prev));
  if (next === null) throw new Error(`delta was refused: ${why}`);
  return next;
}

describe("folded", () => {
  it("keeps a model equal to a fresh snapshot, whatever is lost, repeated or resumed", () => {
    // One sentence a law: a delta from any older revision leads to the same state.
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = seeded(seed);
      const server = new TestServer(random);
      server.step();
      let model = modelOf(server.snapshot());
      const revs = [model.rev];
      for (let turn = 0; turn < 40; turn += 1) {
        server.step();
        if (random() < 0.3) continue;
        const older = revs[Math.floor(random() * revs.length)] ?? model.rev;
        model = mustFold(model, server, random() < 0.5 ? model.rev : older);
        if (random() < 0.3) model = mustFold(model, server);
        revs.push(model.rev);
        expect(said(model), `seed ${seed}, turn ${turn}`).toEqual(said(modelOf(server.snapshot())));
      }
    }
  });

  it("refuses a delta that begins after what the model holds", () => {
    // A missed delta is a hole, never a guess.
    const server = new TestServer(seeded(1));
    server.step();
    const model = modelOf(server.snapshot());
    server.step();
    const delta = { ...server.since(model.rev), prev: model.rev + 1 };
    expect(folded(model, delta)).toEqual({ model: null, why: "hole" });
  });

  it("refuses a delta of another epoch", () => {
    // A new life of the state begins with a snapshot.
    const server = new TestServer(seeded(1));
    server.step();
    const model = modelOf(server.snapshot());
    server.epoch += 1;
    expect(folded(model, server.since(0))).toEqual({ model: null, why: "epoch" });
  });

  it("changes nothing when a delta arrives a second time", () => {
    // Applying twice is harmless.
    const server = new TestServer(seeded(2));
    server.step();
    const model = modelOf(server.snapshot());
    server.step();
    const delta = server.since(model.rev);
    const once = folded(model, delta).model as Model;
    expect(folded(once, delta).model).toBe(once);
  });

  it("turns provisional windows final without new values", () => {
    // Each p up to final_to_ms becomes f.
    const server = new TestServer(seeded(3));
    server.step();
    const model = modelOf(server.snapshot());
    const last = model.tMs[model.tMs.length - 1] as number;
    const delta = { ...server.since(server.rev), rev: server.rev + 1, final_to_ms: last };
    const after = folded(model, delta).model as Model;
    expect(after.series.get(0)?.state).toBe("f".repeat(12));
  });

  it("knows up to where all of it is counted", () => {
    // From the snapshot, and then from what is final; never less than before.
    const server = new TestServer(seeded(3));
    server.step();
    const answer = server.snapshot();
    const metric = { ...answer.metric, lateness_ms: 40_000 };
    const finalMs = answer.final_to_ms ?? 0;
    const fresh = { processed_through_ms: finalMs + 45_000 };
    const model = modelOf({ ...answer, metric, fresh });
    expect(model.throughMs).toBe(finalMs + 45_000);
    const delta = { ...server.since(server.rev), rev: server.rev + 1 };
    expect(folded(model, delta).model?.throughMs).toBe(finalMs + 45_000);
    const later = { ...delta, final_to_ms: finalMs + 10_000 };
    expect(folded(model, later).model?.throughMs).toBe(finalMs + 50_000);
    expect(folded(model, later, finalMs + 55_000).model?.throughMs).toBe(finalMs + 55_000);
    expect(modelOf({ ...answer, final_to_ms: null }).throughMs).toBeNull();
  });

  it("keeps a dimension called __proto__ as a pair", () => {
    // Names come from events; none of them may reach an object's prototype.
    const answer = JSON.parse(
      '{"metric":{},"epoch":1,"rev":1,"final_to_ms":0,"t_ms":[],"of":1,"series":[{"k":0,"by":{"__proto__":"x"},"state":""}]}',
    );
    expect(modelOf(answer).series.get(0)?.by).toEqual([["__proto__", "x"]]);
  });
});

describe("column", () => {
  it("writes null as NaN and fills what is missing", () => {
    // Unknown is never 0.
    expect([...column([1, null], 3)]).toEqual([1, Number.NaN, Number.NaN]);
  });
});

describe("finalized", () => {
  it("touches provisional windows only, up to and including the instant", () => {
    // Incomplete and rebuilding windows are not made final by time passing.
    const times = Float64Array.of(10, 20, 30, 40);
    expect(finalized("pipp", times, 30)).toBe("fifp");
  });
});
