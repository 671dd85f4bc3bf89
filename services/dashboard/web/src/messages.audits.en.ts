/** The words of what audits say of a metric. */

export const auditWords = {
  verified: (at: string) => `verified ${at}`,
  differs: (at: string) => `differed from the log ${at}`,
  inPart: (audited: string, panes: string, of: string) => `${audited}, ${panes} of ${of} panes`,
  withdrawn: {
    version: (audited: string, version: number) => `${audited}, before version ${version} served`,
    epoch: (audited: string) => `${audited}, before it was counted anew`,
  },
  audited: (panes: number, events: string, version: number, from: string, to: string) =>
    `${panes} panes of version ${version} between ${from} and ${to}, with ${events} events in them, were counted again from the log`,
  leftOut: (n: string) => `there was no room for ${n} more`,
  overtaken: (n: string) => `retention took ${n} more before they were read`,
  noFurther: "older ones would need more of the log than an audit may read",
  nothing: (since: string) => `audits compare nothing since ${since}`,
  nothingOf: (at: string, why: string) => `The audit of ${at} compared nothing: ${why}`,
  why: {
    left_out: "there was no room for the panes",
    overtaken: "retention took the panes before they were read",
    failed: "it failed",
    not_drawn: "no pane was drawn",
    last: "no pane was drawn from the time that was asked for",
    retention: "no pane was drawn from what the log holds whole",
    records: "no pane was drawn from as much of the log as an audit may read",
  },
} as const;
