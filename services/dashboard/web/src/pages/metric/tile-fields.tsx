/** The fields of the dialog that puts a metric on a board. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Board } from "../../api/shapes";
import { Seg } from "../../components/seg";
import { boardName, type NewTile } from "../../lib/board-text";
import { metricWords } from "../../messages.metrics.en";
import type { Onto } from "./store-tile";

const SIZES = ["S", "M", "L"] as const;

interface BoardFieldsProps {
  readonly boards: readonly Board[];
  readonly onto: Onto;
  onChange(onto: Onto): void;
}

/** Which board: one that is there, or a new one by its title. */
export function BoardFields({ boards, onto, onChange }: BoardFieldsProps) {
  const chosen = "name" in onto ? onto.name : "";
  const taken = boards.map((board) => board.name);
  const first = useRef<HTMLSelectElement>(null);
  // The dialog opens before the boards are read; whoever has begun to write is left there.
  useEffect(() => {
    const form = first.current?.form;
    if (!form?.contains(document.activeElement)) first.current?.focus();
  }, []);
  return (
    <>
      <Row label={metricWords.put.board} for="tile-board">
        <select
          ref={first}
          id="tile-board"
          class="sel"
          data-testid="tile-board"
          value={chosen}
          onChange={(change) => {
            const name = change.currentTarget.value;
            onChange(
              name ? { name } : { title: boards.length > 0 ? "" : metricWords.put.firstTitle },
            );
          }}
        >
          {boards.map((board) => (
            <option key={board.name} value={board.name}>
              {board.title || board.name}
            </option>
          ))}
          <option value="">{metricWords.put.newBoard}</option>
        </select>
      </Row>
      {"title" in onto && (
        <TextRow
          id="board-title"
          required
          label={metricWords.put.boardTitle}
          value={onto.title}
          hint={onto.title.trim() && metricWords.put.address(`/b/${boardName(onto.title, taken)}`)}
          onInput={(title) => onChange({ title })}
        />
      )}
    </>
  );
}

interface ShapeFieldsProps {
  readonly kinds: readonly NewTile["type"][];
  readonly tile: Pick<NewTile, "type" | "size" | "title">;
  onChange(change: Partial<Pick<NewTile, "type" | "size" | "title">>): void;
}

/** How the tile looks: its kind, its width and its title. */
export function ShapeFields({ kinds, tile, onChange }: ShapeFieldsProps) {
  return (
    <>
      <Row label={metricWords.put.kind}>
        <Seg
          label={metricWords.put.kind}
          value={tile.type}
          choices={kinds.map((value) => ({ value, text: metricWords.put.kinds[value] }))}
          onPick={(type) => onChange({ type })}
        />
      </Row>
      <Row label={metricWords.put.size}>
        <Seg
          label={metricWords.put.size}
          value={tile.size}
          choices={SIZES.map((value) => ({ value, text: metricWords.put.sizes[value] }))}
          onPick={(size) => onChange({ size })}
        />
      </Row>
      <TextRow
        id="tile-title"
        label={metricWords.put.tileTitle}
        value={tile.title}
        onInput={(title) => onChange({ title })}
      />
    </>
  );
}

interface RowProps {
  readonly label: string;
  readonly for?: string;
  readonly children: ComponentChildren;
}

/** A field with its name over it. */
function Row({ label, children, ...rest }: RowProps) {
  return (
    <div class="form-row">
      {rest.for ? <label for={rest.for}>{label}</label> : <span>{label}</span>}
      {children}
    </div>
  );
}

interface TextRowProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  readonly required?: boolean;
  onInput(value: string): void;
}

/** A field for one line of text. */
function TextRow({ id, label, value, hint, required, onInput }: TextRowProps) {
  return (
    <Row label={label} for={id}>
      <input
        id={id}
        class="field"
        type="text"
        maxLength={200}
        required={required}
        // Spaces alone are no title.
        pattern={required ? ".*\\S.*" : undefined}
        autocomplete="off"
        data-testid={id}
        value={value}
        onInput={(input) => onInput(input.currentTarget.value)}
      />
      {hint && <span class="t3 s">{hint}</span>}
    </Row>
  );
}
