import { describe, expect, it } from "vitest";
import { matched } from "../../src/lib/router";
import { backTo, onceOf } from "../../src/pages/login/address";

describe("matched", () => {
  it("finds the names in a path", () => {
    // A pasted link gives the same screen.
    expect(matched("/d/:kind/:name", "/d/metric/a%20b")).toEqual(
      new Map([
        ["kind", "metric"],
        ["name", "a b"],
      ]),
    );
    expect(matched("/live", "/live/")).toEqual(new Map());
    expect(matched("/", "/")).toEqual(new Map());
  });

  it("refuses other paths, and ones that are not encoded", () => {
    // An unknown address says so; it does not show something else.
    expect(matched("/m/:name", "/m")).toBeNull();
    expect(matched("/m/:name", "/b/x")).toBeNull();
    expect(matched("/m/:name", "/m/%E0%A4%A")).toBeNull();
    expect(matched("/", "/live")).toBeNull();
  });
});

describe("signing in", () => {
  it("goes back to this site only", () => {
    // A link must not send whoever signs in to somebody else's page.
    const to = (path: string) => backTo(new URLSearchParams({ to: path }));
    expect(to("/b/web?range=6h")).toBe("/b/web?range=6h");
    for (const path of [
      "//evil.example",
      "/\\evil.example",
      "https://evil.example",
      "javascript:1",
    ]) {
      expect(to(path)).toBe("/");
    }
  });

  it("reads the token of a link from the fragment", () => {
    // The fragment is not sent to any server by the browser.
    expect(onceOf("#once=abc")).toBe("abc");
    expect(onceOf("#once=")).toBeNull();
    expect(onceOf("")).toBeNull();
  });
});
