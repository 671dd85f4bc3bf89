/**
 * One followed query: what is held of it, and what the next frame makes of it. Pure.
 *
 * The answer on screen changes only when a new one is complete: while the parts of a
 * snapshot arrive, or after a refusal, the old one stays.
 */
import { folded, type Model, modelOf, withPart } from "./model";
import type { Position, Problem, ServerFrame } from "./wire";

/** Model held, snapshot under way, and the last refusal. */
export interface Feed {
  readonly model: Model | null;
  readonly partial: Model | null;
  readonly nextPart: number;
  readonly problem: Problem | null;
}

export const EMPTY_FEED: Feed = { model: null, partial: null, nextPart: 1, problem: null };

/** A feed after a frame, and whether the client must subscribe anew from what it holds. */
export interface FeedStep {
  readonly feed: Feed;
  readonly resume: boolean;
}

/** Up to where everything is counted, by the newest revision of which that was told. */
export interface Counted extends Position {
  readonly throughMs: number | null;
}

/** Returns the feed after a frame that belongs to it. */
export function feedAfter(
  feed: Feed,
  frame: ServerFrame,
  counted: Counted | null = null,
): FeedStep {
  switch (frame.op) {
    case "snapshot":
      return snapshotTaken(feed, frame);
    case "delta": {
      if (feed.model === null) return { feed, resume: false };
      const isSooner = counted?.epoch === frame.epoch && counted.rev <= frame.rev;
      const { model, why } = folded(feed.model, frame, isSooner ? counted.throughMs : null);
      // A new epoch brings its snapshot by itself; only a hole has to be asked for.
      if (model === null) return { feed, resume: why === "hole" };
      return { feed: { ...feed, model, problem: null }, resume: false };
    }
    case "error":
      return { feed: { ...feed, partial: null, problem: frame.problem }, resume: false };
    default:
      return { feed, resume: false };
  }
}

function snapshotTaken(
  feed: Feed,
  frame: Extract<ServerFrame, { readonly op: "snapshot" }>,
): FeedStep {
  if (frame.part !== 1 && (feed.partial === null || frame.part !== feed.nextPart)) {
    return { feed: { ...feed, partial: null, nextPart: 1 }, resume: true };
  }
  const partial =
    frame.part === 1 || feed.partial === null
      ? modelOf(frame.answer)
      : withPart(feed.partial, frame.answer);
  if (frame.part < frame.parts) {
    return { feed: { ...feed, partial, nextPart: frame.part + 1 }, resume: false };
  }
  return { feed: { model: partial, partial: null, nextPart: 1, problem: null }, resume: false };
}

/** Returns from where to resume, or null where only a snapshot helps. */
export function positionOf(feed: Feed): Position | null {
  return feed.model === null ? null : { epoch: feed.model.epoch, rev: feed.model.rev };
}
