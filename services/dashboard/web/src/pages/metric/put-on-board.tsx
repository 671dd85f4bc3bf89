/** The way from a metric to a board: a button, and the dialog that makes the tile. */
import { useState } from "preact/hooks";
import { problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { Board, MetricDetail, Page } from "../../api/shapes";
import { Copy } from "../../components/copy";
import { Icon } from "../../components/icon";
import { Modal } from "../../components/modal";
import { Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import { type NewTile, tileLine } from "../../lib/board-text";
import { current, navigate, replaceParams } from "../../lib/router";
import { may } from "../../lib/session";
import { lengthOf, lengthWords } from "../../lib/time";
import { putting, to } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { words } from "../../messages.en";
import { lastBoard } from "../board/last";
import { chosenOf } from "./choice";
import { type Onto, storeTile } from "./store-tile";
import { kindsOf, tileOf } from "./tile";
import { BoardFields, Row, TextRow } from "./tile-fields";

const SIZES = ["S", "M", "L"] as const;

/** The button; the address opens the dialog, too (`?put=board`). */
export function PutOnBoard({ metric }: { metric: MetricDetail }) {
  if (!may("define")) return null;
  return (
    <>
      <button
        type="button"
        class="btn"
        data-testid="put-on-board"
        onClick={() => replaceParams({ put: "board" })}
      >
        <Icon name="plus" small />
        {words.put.button}
      </button>
      {putting.value && (
        <Modal title={words.put.title} close={() => replaceParams({ put: null })}>
          <TileForm metric={metric} />
        </Modal>
      )}
    </>
  );
}

function TileForm({ metric }: { metric: MetricDetail }) {
  const boards = useLoad<Page<Board>>("/boards");
  const [type, setType] = useState<NewTile["type"]>("chart");
  const [size, setSize] = useState<NewTile["size"] | null>(null);
  const [title, setTitle] = useState<string | null>(null);
  const [onto, setOnto] = useState<Onto | null>(null);
  const tile = tileOf(metric, chosenOf(metric, current.value.params), {
    type,
    ...(size !== null && { size }),
    ...(title !== null && { title }),
  });
  const items = boards.body?.items;
  const board = onto ?? (items ? usualBoard(items) : null);
  const { store, busy, problem } = useStore(board, tile);
  if (boards.problem && !items) return <Refused problem={boards.problem} retry={boards.reload} />;
  return (
    <form
      class="stack"
      data-testid="tile-form"
      onSubmit={(submit) => {
        submit.preventDefault();
        store();
      }}
    >
      {problem && <Told problem={problem} tile={tile} board={board} again={store} />}
      {board && <BoardFields boards={items ?? []} onto={board} onChange={setOnto} />}
      <Row label={words.put.kind}>
        <Seg
          label={words.put.kind}
          value={type}
          choices={kindsOf(metric).map((value) => ({ value, text: words.put.kinds[value] }))}
          onPick={(kind) => setType(kind)}
        />
      </Row>
      <Row label={words.put.size}>
        <Seg
          label={words.put.size}
          value={tile.size}
          choices={SIZES.map((value) => ({ value, text: words.put.sizes[value] }))}
          onPick={(width) => setSize(width)}
        />
      </Row>
      <TextRow
        id="tile-title"
        label={words.put.tileTitle}
        value={title ?? tile.title}
        onInput={setTitle}
      />
      <p class="t3 s" data-testid="tile-shows">
        {showsOf(tile)}
      </p>
      <button
        type="submit"
        class="btn go"
        data-testid="tile-store"
        disabled={busy || board === null || ("title" in board && board.title.trim() === "")}
      >
        {busy ? words.put.storing : words.put.button}
      </button>
    </form>
  );
}

/** Stores on request, and goes to the board. */
function useStore(board: Onto | null, tile: NewTile) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const store = () => {
    if (board === null || busy) return;
    setBusy(true);
    setProblem(null);
    storeTile(board, tile).then(
      (name) => navigate(to(`/b/${name}`)),
      (error: unknown) => {
        setBusy(false);
        setProblem(problemOf(error));
      },
    );
  };
  return { store, busy, problem };
}

/** The board that was looked at last, else the first; without any, a new one. */
function usualBoard(boards: readonly Board[]): Onto {
  const usual = boards.find((board) => board.name === lastBoard()) ?? boards[0];
  return usual ? { name: usual.name } : { title: words.put.firstTitle };
}

/** What the tile asks, in words: it is what the page shows now. */
function showsOf({ aggregate, by = [], window }: NewTile): string {
  const length = window ? lengthWords(lengthOf(window.length) ?? 0) : null;
  return words.put.shows(aggregate, length, by.join(", "));
}

interface ToldProps {
  readonly problem: Problem;
  readonly tile: NewTile;
  readonly board: Onto | null;
  again(): void;
}

/** What was refused; a conflict is tried again, a text that no tile fits into is led to. */
function Told({ problem, tile, board, again }: ToldProps) {
  const byHand = problem.status === 422 && board !== null && "name" in board;
  return (
    <>
      <Refused problem={problem} {...(!byHand && { retry: again })} />
      {byHand && (
        <div class="row wrap">
          <Copy text={`- ${tileLine(tile)}`} label={words.put.copyTile} />
          <a class="btn sm" href={to(`/d/board/${board.name}`)}>
            {words.put.editBoard}
          </a>
        </div>
      )}
    </>
  );
}
