/** What stands between the numbers and the truth, in one sentence above the page. */

import { pausedMs, togglePause } from "../lib/pause";
import { clockOn } from "../lib/time";
import { zone } from "../lib/view";
import { live, nowMs } from "../live/live";
import { words } from "../messages.en";
import { freshNow } from "./freshness";
import { Note } from "./notes";

/** Names the part that stands still, or that this screen has lost the server. */
export function Banner() {
  const told = freshNow(pausedMs.value);
  if (told.state === "paused") {
    return (
      <Note tone="warn" icon="pause">
        <div class="row">
          <span>
            <b>{told.head}</b> {told.rest}
          </span>
          <button type="button" class="btn sm" onClick={togglePause}>
            {words.pause.backToNow}
          </button>
        </div>
      </Note>
    );
  }
  if (told.state === "disconnected") {
    return (
      <Note tone="bad" icon="off">
        <div class="row wrap">
          <span>
            <b>{told.head}</b>: {words.fresh.lost}
          </span>
          <button type="button" class="btn sm" onClick={() => live.wake()}>
            {words.fresh.retryNow}
          </button>
        </div>
      </Note>
    );
  }
  if (told.state !== "stale") return null;
  const { fresh } = live.link.value;
  const since = clockOn(fresh?.since_ms ?? nowMs.value, nowMs.value, zone.value, "second");
  const begun = fresh?.processed_through_ms !== null || fresh.part !== "panes";
  return (
    <Note tone="warn" icon="stale">
      {!begun ? words.fresh.notBegun : words.fresh.stoppedAt(fresh?.part ?? null, since)}
    </Note>
  );
}
