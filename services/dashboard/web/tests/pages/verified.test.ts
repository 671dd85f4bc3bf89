import { describe, expect, it } from "vitest";
import type { MetricDetail } from "../../src/api/shapes";
import Verified from "../../src/pages/metric/verified";

const HOUR_MS = 3_600_000;
const compared = {
  job: "audit_1",
  ok: true,
  at_ms: 10 * HOUR_MS,
  from_ms: 8 * HOUR_MS,
  to_ms: 9 * HOUR_MS,
  bounded_by: "last",
  version: 1,
  panes: 40,
  left_out: 0,
  overtaken: 0,
  series: 9,
  events: 500,
  rev: 3,
  withdrawn_by: null,
};
const nothing = {
  job: "audit_9",
  at_ms: 20 * HOUR_MS,
  why: "not_drawn",
  bounded_by: "records",
  since_ms: 12 * HOUR_MS,
  audits: 3,
};

function shown(verified: unknown, not_compared: unknown) {
  const badge = Verified({ metric: { version: 1, verified, not_compared } as MetricDetail });
  const props = badge?.props as { class: string; title: string; children: unknown[] } | undefined;
  return props && { look: props.class, title: props.title, text: String(props.children[1]) };
}

describe("Verified", () => {
  it("tells what was compared, and when", () => {
    const badge = shown(compared, null);
    expect(badge?.look).toBe("state good");
    expect(badge?.text).toMatch(/^verified \S+ \S+ \S+$/);
    expect(badge?.title).toMatch(/^40 panes of version 1 .* were counted again from the log$/);
    expect(shown(null, null)).toBeUndefined();
  });

  it("tells how much of the sample that was, and why it was no more", () => {
    const badge = shown(
      { ...compared, panes: 1, left_out: 37, overtaken: 2, bounded_by: "records" },
      null,
    );
    expect(badge?.look).toBe("state good");
    expect(badge?.text).toMatch(/^verified .*, 1 of 40 panes$/);
    expect(badge?.title).toContain(
      "from the log; there was no room for 37 more; retention took 2 more before they were read; older ones would need more of the log than an audit may read",
    );
  });

  it("is not green while audits compare nothing, and says since when and why", () => {
    const badge = shown(compared, nothing);
    expect(badge?.look).toBe("state none");
    expect(badge?.text).toMatch(/^verified .*, audits compare nothing since .*\d$/);
    expect(badge?.title).toMatch(
      /log\. The audit of .* compared nothing: no pane was drawn from as much of the log as an audit may read$/,
    );
  });

  it("says so of what no audit has ever compared", () => {
    const badge = shown(null, { ...nothing, why: "overtaken" });
    expect(badge?.look).toBe("state none");
    expect(badge?.text).toMatch(/^audits compare nothing since /);
    expect(badge?.title).toMatch(/: retention took the panes before they were read$/);
  });

  it("keeps a difference red, whatever came after", () => {
    expect(shown({ ...compared, ok: false }, nothing)?.look).toBe("state bad");
    expect(shown({ ...compared, ok: false, withdrawn_by: "epoch" }, nothing)?.look).toBe(
      "state none",
    );
  });
});
