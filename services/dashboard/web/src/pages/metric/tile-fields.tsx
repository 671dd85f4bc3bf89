/** The fields of the dialog that puts a metric on a board. */
import type { ComponentChildren } from "preact";
import type { Board } from "../../api/shapes";
import { boardName } from "../../lib/board-text";
import { words } from "../../messages.en";
import type { Onto } from "./store-tile";

interface BoardFieldsProps {
  readonly boards: readonly Board[];
  readonly onto: Onto;
  onChange(onto: Onto): void;
}

/** Which board: one that is there, or a new one by its title. */
export function BoardFields({ boards, onto, onChange }: BoardFieldsProps) {
  const chosen = "name" in onto ? onto.name : "";
  const taken = boards.map((board) => board.name);
  return (
    <>
      <Row label={words.put.board} for="tile-board">
        <select
          id="tile-board"
          class="sel"
          data-testid="tile-board"
          value={chosen}
          onChange={(change) => {
            const name = change.currentTarget.value;
            onChange(name ? { name } : { title: boards.length > 0 ? "" : words.put.firstTitle });
          }}
        >
          {boards.map((board) => (
            <option key={board.name} value={board.name}>
              {board.title || board.name}
            </option>
          ))}
          <option value="">{words.put.newBoard}</option>
        </select>
      </Row>
      {"title" in onto && (
        <TextRow
          id="board-title"
          label={words.put.boardTitle}
          value={onto.title}
          hint={onto.title.trim() && words.put.address(`/b/${boardName(onto.title, taken)}`)}
          onInput={(title) => onChange({ title })}
        />
      )}
    </>
  );
}

interface RowProps {
  readonly label: string;
  readonly for?: string;
  readonly children: ComponentChildren;
}

/** A field with its name over it. */
export function Row({ label, children, ...rest }: RowProps) {
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
  onInput(value: string): void;
}

/** A field for one line of text. */
export function TextRow({ id, label, value, hint, onInput }: TextRowProps) {
  return (
    <Row label={label} for={id}>
      <input
        id={id}
        class="field"
        type="text"
        maxLength={200}
        autocomplete="off"
        data-testid={id}
        value={value}
        onInput={(input) => onInput(input.currentTarget.value)}
      />
      {hint && <span class="t3 s">{hint}</span>}
    </Row>
  );
}
