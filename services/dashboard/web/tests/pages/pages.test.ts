import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isUnder, NAMED, NAV, PAGES, pageAt } from "../../src/pages";

const FOLDER = new URL("../../src/pages/", import.meta.url);

describe("pages", () => {
  it("are found by their address, with the names in it", () => {
    const found = pageAt("/d/metric/requests");
    expect(found?.page.pattern).toBe("/d/:kind/:name");
    expect([...(found?.names ?? [])]).toEqual([
      ["kind", "metric"],
      ["name", "requests"],
    ]);
    expect(pageAt("/metrics/new")?.page.action).toBe(true);
    expect(pageAt("/nothing/like/it")).toBeNull();
  });

  it("belong to one entry of the navigation each, but for the door", () => {
    for (const { pattern } of PAGES) {
      const over = NAV.filter((nav) => isUnder(pattern, nav));
      expect(over.length, pattern).toBe(pattern === "/login" ? 0 : 1);
    }
    expect(NAV.filter((nav) => isUnder("/m/requests", nav)).map((nav) => nav.pattern)).toEqual([
      "/metrics",
    ]);
  });

  it("can be offered: a name stands for a fixed address, keys and places are its own", () => {
    for (const { pattern } of NAMED) expect(pattern).not.toContain(":");
    const keys = PAGES.map((page) => page.keys).filter(Boolean);
    expect(new Set(keys).size).toBe(keys.length);
    expect(NAV.filter((page) => page.onPhone).length).toBe(4);
  });

  it("are all in the list", () => {
    const list = readFileSync(new URL("../pages.ts", FOLDER), "utf8");
    for (const folder of readdirSync(FOLDER)) expect(list).toContain(`./pages/${folder}/`);
  });
});
