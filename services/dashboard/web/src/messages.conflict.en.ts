/** The words of a text that somebody else has overtaken. */

export const conflictWords = {
  title: (kind: string) => `Somebody else has saved this ${kind}`,
  text: (version: number, by: string) =>
    `While you wrote, ${by} saved version ${version}. Yours is still here and not stored.`,
  gone: (kind: string) =>
    `Somebody has deleted this ${kind} while you wrote. Yours is still here and not stored.`,
  show: "Show theirs",
  theirs: (version: number) => `Version ${version}, as it is stored`,
  take: "Take theirs",
  keep: "Go on with mine",
  keepWhy: "With yours, the next save replaces theirs.",
  again: (kind: string) => `Store mine as a new ${kind}`,
} as const;
