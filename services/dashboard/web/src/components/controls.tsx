/** The controls in the bar of a page that shows time: range, pause, table. */
import { pausedMs, togglePause } from "../lib/pause";
import { asTable, RANGES, range, setRange, toggleTable } from "../lib/view";
import { words } from "../messages.en";
import { Icon } from "./icon";
import { Note } from "./notes";
import { Seg } from "./seg";

const CHOICES = RANGES.map((value) => ({ value, text: value.replace(/(\d+)/, "$1 ") }));

/** Range, pause and table view. */
export function TimeControls() {
  const paused = pausedMs.value !== null;
  return (
    <>
      <Seg
        label={words.range.label}
        choices={CHOICES}
        value={range.value.value}
        onPick={setRange}
      />
      <button type="button" class="btn hide-s" aria-pressed={asTable.value} onClick={toggleTable}>
        <Icon name={asTable.value ? "metric" : "table"} small />
        {asTable.value ? words.view.chart : words.view.table}
      </button>
      <button
        type="button"
        class={paused ? "btn go" : "btn"}
        aria-label={paused ? words.pause.goOn : words.pause.pause}
        data-testid="pause"
        onClick={togglePause}
      >
        <Icon name={paused ? "play" : "pause"} small />
        <span class="hide-s">{paused ? words.pause.goOn : words.pause.pause}</span>
      </button>
    </>
  );
}

/** Names a parameter of the address that could not be used. */
export function ParamNotes() {
  const { unknown } = range.value;
  if (unknown === null) return null;
  return (
    <Note tone="warn" icon="alert">
      {words.range.unknown(unknown)}
    </Note>
  );
}
