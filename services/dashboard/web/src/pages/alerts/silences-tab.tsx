/** Silences: what each hides, until when, by whom and why; and how one is ended. */
import { useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { Page, Rule, Silence } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { may } from "../../lib/session";
import { clockOn } from "../../lib/time";
import { zone } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { actWords } from "../../messages.channels.en";
import { listNowMs } from "./choice";
import { whatOf } from "./silence";
import SilenceForm from "./silence-form";

const said = actWords.silences;
const { head } = said;
const EVERY_MS = 2_000;

/** The table, and the way to a new one. */
export default function SilencesTab({ rules }: { rules: readonly Rule[] }) {
  const { body, problem, reload } = useLoad<Page<Silence>>("/silences", EVERY_MS);
  const [making, setMaking] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const end = ({ name }: Silence) => {
    setRefused(null);
    const path = `/silences/${encodeURIComponent(name)}`;
    call<Silence>({ method: "DELETE", path }).then(reload, (error: unknown) =>
      setRefused(problemOf(error)),
    );
  };
  const told = refused ?? problem;
  return (
    <>
      {told && <Refused problem={told} retry={reload} />}
      {body && (
        <div class="panel rules-table row-cards">
          {may("operate") && (
            <div class="row tab-acts">
              <button
                type="button"
                class="btn tall"
                data-testid="new-silence"
                onClick={() => setMaking(true)}
              >
                <Icon name="plus" small />
                {said.make}
              </button>
            </div>
          )}
          {body.items.length > 0 ? <Table silences={body.items} end={end} /> : <None />}
        </div>
      )}
      {making && (
        <SilenceForm
          first={{ rule: "", where: "" }}
          rules={rules}
          done={reload}
          close={() => setMaking(false)}
        />
      )}
    </>
  );
}

function None() {
  return (
    <Empty title={said.none}>
      <span class="s">{said.noneHint}</span>
    </Empty>
  );
}

interface TableProps {
  readonly silences: readonly Silence[];
  end(silence: Silence): void;
}

function Table({ silences, end }: TableProps) {
  return (
    <VirtualTable
      label={said.label}
      tall
      rows={silences}
      head={
        <tr>
          <th>{head.what}</th>
          <th>{head.until}</th>
          <th class="num">{head.firing}</th>
          <th class="num">{head.day}</th>
          <th>{head.reason}</th>
          <th>{head.by}</th>
          <th>
            <span class="sr">{said.end}</span>
          </th>
        </tr>
      }
      row={(one) => <Row key={one.name} silence={one} end={end} />}
    />
  );
}

function Row({ silence, end }: { silence: Silence; end(silence: Silence): void }) {
  const until = clockOn(silence.until_ms, listNowMs.value, zone.value);
  const what = whatOf(silence);
  return (
    <tr data-testid="silence-row" data-name={silence.name}>
      <td class="b">{what}</td>
      <td class="t2" data-label={silence.active ? head.until : undefined}>
        {silence.active ? until : said.over(until)}
      </td>
      <td class="num" data-label={head.firing}>
        {silence.firing}
      </td>
      <td class="num" data-label={head.day}>
        {silence.day}
      </td>
      <td class="t2" data-label={silence.reason ? head.reason : undefined}>
        {silence.reason}
      </td>
      <td class="t2" data-label={head.by}>
        {silence.by}
      </td>
      <td>
        {silence.active && may("operate") && (
          <button
            type="button"
            class="btn sm"
            data-testid="end-silence"
            aria-label={said.endOf(what)}
            onClick={() => end(silence)}
          >
            {said.end}
          </button>
        )}
      </td>
    </tr>
  );
}
