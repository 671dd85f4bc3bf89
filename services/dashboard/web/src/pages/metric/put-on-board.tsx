/** The way from a metric to a board: a button, and the dialog that makes the tile. */
import { useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { Board, MetricDetail, Page } from "../../api/shapes";
import { Copy } from "../../components/copy";
import { Icon } from "../../components/icon";
import { Modal } from "../../components/modal";
import { Refused } from "../../components/notes";
import { useOpen } from "../../components/use-open";
import { type NewTile, tileLine } from "../../lib/board-text";
import { current, navigate, replaceParams } from "../../lib/router";
import { may } from "../../lib/session";
import { lengthOf, lengthWords } from "../../lib/time";
import { putting, to } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { metricWords } from "../../messages.metrics.en";
import { lastBoard } from "../board/last";
import { chosenOf } from "./choice";
import { type Mend, mendOf, type Onto, type Sent, storeTile } from "./store-tile";
import { kindsOf, tileOf } from "./tile";
import { BoardFields, ShapeFields } from "./tile-fields";

/** What somebody chose of a tile; the rest follows from the metric's page. */
type Asked = Pick<NewTile, "type"> & Partial<Pick<NewTile, "size" | "title">>;

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
        {metricWords.put.button}
      </button>
      {putting.value && (
        <Modal title={metricWords.put.title} close={() => replaceParams({ put: null })}>
          <TileForm metric={metric} />
        </Modal>
      )}
    </>
  );
}

function TileForm({ metric }: { metric: MetricDetail }) {
  const boards = useLoad<Page<Board>>("/boards");
  const [asked, setAsked] = useState<Asked>({ type: "chart" });
  const [onto, setOnto] = useState<Onto | null>(null);
  const tile = tileOf(metric, chosenOf(metric, current.value.params), asked);
  const items = boards.body?.items;
  const board = onto ?? (items ? usualBoard(items) : null);
  const chooseAnew = () => {
    boards.reload();
    setOnto(null);
  };
  const { store, forget, busy, refused } = useStore(board, tile, chooseAnew);
  const submit = useRef<HTMLButtonElement>(null);
  if (boards.problem && !items) return <Refused problem={boards.problem} retry={boards.reload} />;
  return (
    <form
      class="stack"
      data-testid="tile-form"
      onSubmit={(event) => {
        event.preventDefault();
        // The alert goes away, and the focus must not go with it.
        submit.current?.focus();
        store();
      }}
    >
      {refused && <Told refused={refused} tile={tile} board={board} />}
      {board && (
        <BoardFields
          boards={items ?? []}
          onto={board}
          onChange={(next) => {
            forget();
            setOnto(next);
          }}
        />
      )}
      <ShapeFields
        kinds={kindsOf(metric)}
        tile={{ ...tile, ...asked }}
        onChange={(change) => setAsked({ ...asked, ...change })}
      />
      <p class="t3 s" data-testid="tile-shows">
        {showsOf(tile)}
      </p>
      <button
        ref={submit}
        type="submit"
        class="btn go"
        data-testid="tile-store"
        aria-disabled={busy || board === null}
      >
        {busy ? metricWords.put.storing : metricWords.put.button}
      </button>
    </form>
  );
}

/** A refusal, and what helps. */
interface Refusing {
  readonly problem: Problem;
  readonly mend: Mend;
}

/** Stores on request, and goes to the board unless the dialog was left meanwhile. */
function useStore(board: Onto | null, tile: NewTile, chooseAnew: () => void) {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refusing | null>(null);
  const unsure = useRef<Sent[]>([]);
  const open = useOpen();
  const store = () => {
    if (board === null || busy) return;
    setBusy(true);
    setRefused(null);
    storeTile(board, tile, unsure.current).then(
      (name) => open.current && navigate(to(`/b/${name}`)),
      (error: unknown) => {
        const problem = problemOf(error);
        setBusy(false);
        setRefused({ problem, mend: mendOf(error) });
        if (problem.status === 404) chooseAnew();
      },
    );
  };
  return { store, forget: () => setRefused(null), busy, refused };
}

/** The board that was looked at last, else the first; without any, a new one. */
function usualBoard(boards: readonly Board[]): Onto {
  const usual = boards.find((board) => board.name === lastBoard()) ?? boards[0];
  return usual ? { name: usual.name } : { title: metricWords.put.firstTitle };
}

/** What the tile asks, in words: it is what the page shows now. */
function showsOf({ aggregate, by = [], window }: NewTile): string {
  const length = window ? lengthWords(lengthOf(window.length) ?? 0) : null;
  return metricWords.put.shows(aggregate, length, by.join(", "));
}

interface ToldProps {
  readonly refused: Refusing;
  readonly tile: NewTile;
  readonly board: Onto | null;
}

/** What was refused and what helps; it takes the focus, since whoever pressed the button waits. */
function Told({ refused: { problem, mend }, tile, board }: ToldProps) {
  const told = useRef<HTMLDivElement>(null);
  useEffect(() => told.current?.focus(), [problem]);
  const again = () => told.current?.closest("form")?.requestSubmit();
  return (
    <div ref={told} tabIndex={-1} class="stack" data-testid="tile-refused">
      <Refused problem={problem} {...(mend === "again" && { retry: again })} />
      {mend === "by_hand" && board !== null && "name" in board && (
        <div class="row wrap">
          <Copy text={`- ${tileLine(tile)}`} label={metricWords.put.copyTile} />
          <a class="btn sm" href={to(`/d/board/${board.name}`)}>
            {metricWords.put.editBoard}
          </a>
        </div>
      )}
    </div>
  );
}
