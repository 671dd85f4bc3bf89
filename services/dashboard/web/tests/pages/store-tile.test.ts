import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Refusal } from "../../src/api/client";
import { type NewTile, newBoard, tileLine } from "../../src/lib/board-text";
import { metricWords } from "../../src/messages.metrics.en";
import { mendOf, type Sent, storeTile } from "../../src/pages/metric/store-tile";

const TILE: NewTile = {
  type: "number",
  title: "n",
  size: "S",
  metric: "orders",
  aggregate: "count",
};
const TEXT = "kind: board\nname: shop\ntiles:\n";
const WITH_TILE = `${TEXT}  - ${tileLine(TILE)}\n`;
const CONFLICT = { code: "version_conflict", message: "you changed version 1" };

interface Edit {
  readonly op: "put" | "delete";
  readonly version: number;
  readonly text: string | null;
}

/** The definitions of a server that reads a tile as one line; what is put can be lost on the way. */
class TestDefinitions {
  readonly edits = new Map<string, Edit[]>([["shop", [{ op: "put", version: 1, text: TEXT }]]]);
  /** What happens at each PUT, the next first: nothing special, or what is named here. */
  readonly puts: ((put: () => Response) => Response)[] = [];
  validated: unknown = null;

  readonly fetch = async (url: string, { method, headers, body }: RequestInit) => {
    const path = url.replace("/api/v1", "");
    const sent = body ? JSON.parse(String(body)) : null;
    const name = path.split("/")[3] ?? "";
    if (path === "/boards") return told(200, { items: this.names().map((one) => ({ name: one })) });
    if (path === "/definitions/validate") {
      return told(200, this.validated ?? { ok: true, parsed: parsed(sent.text) });
    }
    if (path.endsWith("/history")) return told(200, { items: [...this.of(name)].reverse() });
    if (method !== "PUT") return this.read(name);
    const put = () => this.put(name, sent.text, headers as Record<string, string>);
    return this.puts.shift()?.(put) ?? put();
  };

  texts(name: string): (string | null)[] {
    return this.of(name).map((edit) => edit.text);
  }

  write(name: string, text: string | null): void {
    const version = (this.of(name).at(-1)?.version ?? 0) + 1;
    this.edits.set(name, [
      ...this.of(name),
      { op: text === null ? "delete" : "put", version, text },
    ]);
  }

  names(): string[] {
    return [...this.edits.keys()].filter((name) => this.of(name).at(-1)?.op === "put");
  }

  private of(name: string): Edit[] {
    return this.edits.get(name) ?? [];
  }

  private read(name: string): Response {
    const newest = this.of(name).at(-1);
    if (newest?.op !== "put") return told(404, { code: "not_found", message: "none" });
    return told(200, { name, ...newest, parsed: parsed(newest.text ?? "") });
  }

  private put(name: string, text: string, headers: Record<string, string>): Response {
    const newest = this.of(name).at(-1);
    const there = newest?.op === "put" ? `"${newest.version}"` : "*";
    const wanted = headers["if-match"] ?? headers["if-none-match"];
    if (wanted !== there) return told(412, CONFLICT);
    this.write(name, text);
    return told(200, {});
  }
}

const told = (status: number, body: unknown) => {
  const full = status < 400 ? body : { status, ...(body as object) };
  return new Response(JSON.stringify(full), { status });
};

const parsed = (text: string) => ({
  tiles: text.split("\n").filter((line) => line.startsWith("  - ")),
});

/** The change arrives, its answer does not. */
const answerLost = (put: () => Response): Response => {
  put();
  throw new TypeError("fetch failed");
};

let server: TestDefinitions;
beforeEach(() => {
  server = new TestDefinitions();
  vi.stubGlobal("fetch", server.fetch);
});
afterEach(() => vi.unstubAllGlobals());

/** Returns what a try was refused with. */
async function refused(onto: Parameters<typeof storeTile>[0], unsure: Sent[] = []) {
  const error = await storeTile(onto, TILE, unsure).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Refusal);
  const { message, errors } = (error as Refusal).problem;
  return { message, errors, mend: mendOf(error) };
}

describe("storeTile, after an answer that never came", () => {
  it("finds the tile that was stored, and stores none twice", async () => {
    // A second tile would be there for good, and nobody asked for it.
    server.puts.push(answerLost);
    const unsure: Sent[] = [];
    const { message, mend } = await refused({ name: "shop" }, unsure);
    expect([message, mend]).toEqual([metricWords.put.unsure, "again"]);
    expect(await storeTile({ name: "shop" }, TILE, unsure)).toBe("shop");
    expect(server.texts("shop")).toEqual([TEXT, WITH_TILE]);
  });

  it("finds it also where others changed the board since", async () => {
    // The text in force is not ours any more, yet ours is in it.
    server.puts.push(answerLost);
    const unsure: Sent[] = [];
    await refused({ name: "shop" }, unsure);
    server.write("shop", `${WITH_TILE}# word\n`);
    await storeTile({ name: "shop" }, TILE, unsure);
    expect(server.texts("shop")).toHaveLength(3);
  });

  it("makes no second board", async () => {
    // The name is taken now, by the board that was made.
    server.puts.push(answerLost);
    const unsure: Sent[] = [];
    await refused({ title: "New" }, unsure);
    expect(await storeTile({ title: "New" }, TILE, unsure)).toBe("new");
    expect(server.names()).toEqual(["shop", "new"]);
  });

  it("makes the board again that was made and deleted meanwhile", async () => {
    // What was before a deletion is not there.
    server.puts.push(answerLost);
    const unsure: Sent[] = [];
    await refused({ title: "New" }, unsure);
    server.write("new", null);
    expect(await storeTile({ title: "New" }, TILE, unsure)).toBe("new");
    expect(server.texts("new").at(-1)).toBe(newBoard("new", "New", TILE));
  });

  it("stores what did not arrive, and what is another tile", async () => {
    // Nothing is there, or something else than what is asked now.
    const never = () => {
      throw new TypeError("fetch failed");
    };
    server.puts.push(never, answerLost);
    const unsure: Sent[] = [];
    await refused({ name: "shop" }, unsure);
    await refused({ name: "shop" }, unsure);
    expect(server.texts("shop")).toEqual([TEXT, WITH_TILE]);
    await storeTile({ name: "shop" }, { ...TILE, size: "L" }, unsure);
    expect(server.texts("shop")).toHaveLength(3);
  });

  it("finds what arrives while it is tried again", async () => {
    // The change was on its way all the time: only its version tells.
    let late: (() => Response) | null = null;
    server.puts.push(
      (put) => {
        late = put;
        throw new TypeError("fetch failed");
      },
      (put) => {
        late?.();
        return put();
      },
    );
    const unsure: Sent[] = [];
    await refused({ name: "shop" }, unsure);
    await storeTile({ name: "shop" }, TILE, unsure);
    expect(server.texts("shop")).toEqual([TEXT, WITH_TILE]);
  });

  it("says so in other words where nothing was sent", async () => {
    // Nobody needs to look for a tile that cannot be there.
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed")));
    expect((await refused({ name: "shop" })).message).toBe(metricWords.put.unreachable);
  });
});

describe("storeTile, beside others", () => {
  const overtaken = (put: () => Response) => {
    server.write("shop", `${server.texts("shop").at(-1)}# word\n`);
    return put();
  };

  it("reads again and stores over a change that came between", async () => {
    // Whoever puts a tile changed no version and has nothing to decide.
    server.puts.push(overtaken);
    await storeTile({ name: "shop" }, TILE, []);
    expect(server.texts("shop")).toHaveLength(3);
    expect(server.texts("shop").at(-1)).toContain("# word\n");
    expect(server.texts("shop").at(-1)).toContain(tileLine(TILE));
  });

  it("gives up after the second, in words of the dialog", async () => {
    // A board that is written all the time would be read for ever.
    server.puts.push(overtaken, overtaken);
    expect(await refused({ name: "shop" })).toEqual({
      message: metricWords.put.raced,
      errors: [],
      mend: "again",
    });
  });

  it("takes the next name where another board was faster", async () => {
    // The title is the user's, the address is not.
    server.puts.push((put) => {
      server.write("new", "theirs");
      return put();
    });
    expect(await storeTile({ title: "New" }, TILE, [])).toBe("new_2");
  });

  it("names the board that was deleted, and tries it no more", async () => {
    // The same request would be refused for ever.
    server.write("shop", null);
    const { message, mend } = await refused({ name: "shop" });
    expect([message, mend]).toEqual([metricWords.put.deleted("shop"), null]);
  });
});

describe("storeTile, refused for what it is", () => {
  it("leads from a full board to another", async () => {
    // Putting the tile there by hand would be refused, too.
    server.write("shop", TEXT + "  - {}\n".repeat(60));
    const { message, mend } = await refused({ name: "shop" });
    expect([message, mend]).toEqual(["a board has at most 60 tiles; choose another board", null]);
  });

  it("tells no error of a text that nobody wrote", async () => {
    // It is the text of a guess; the tile is put there by hand.
    const errors = [{ pointer: "", required: "YAML", got: "[", mend: "mend that line" }];
    server.validated = { ok: false, message: "definition must be YAML", errors };
    const byHand = { message: metricWords.put.byHand, errors: [], mend: "by_hand" };
    expect(await refused({ name: "shop" })).toEqual(byHand);
  });

  it("tells what is wrong with the tile", async () => {
    // That is of what the user chose.
    const errors = [{ pointer: "/tiles/0/title", required: "shorter", got: "n", mend: "cut it" }];
    server.validated = { ok: false, message: "/tiles/0/title must be shorter", errors };
    const { message, mend } = await refused({ name: "shop" });
    expect([message, mend]).toEqual(["/tiles/0/title must be shorter", null]);
  });
});
