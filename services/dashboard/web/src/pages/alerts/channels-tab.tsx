/** Channels: how each is, and a test of it with what really came of it. */
import { useState } from "preact/hooks";
import { useLoad } from "../../api/load";
import type { Channel, Page } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { may } from "../../lib/session";
import { clockOn } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { actWords } from "../../messages.channels.en";
import { ChannelForm } from "./channel-form";
import { Outcome, TestButton } from "./channel-test";
import { listNowMs } from "./choice";

const said = actWords.channels;
const { head } = said;
const EVERY_MS = 2_000;

/** The table, and the way to a new one. */
export default function ChannelsTab() {
  const { body, problem, reload } = useLoad<Page<Channel>>("/channels", EVERY_MS);
  const [making, setMaking] = useState(false);
  return (
    <>
      {problem && <Refused problem={problem} retry={reload} />}
      {body && (
        <div class="panel rules-table row-cards">
          {may("define") && (
            <div class="row tab-acts">
              <button
                type="button"
                class="btn tall"
                data-testid="new-channel"
                onClick={() => setMaking(true)}
              >
                <Icon name="plus" small />
                {said.make}
              </button>
            </div>
          )}
          {body.items.length > 0 ? <Table channels={body.items} reload={reload} /> : <None />}
        </div>
      )}
      {making && <ChannelForm done={reload} close={() => setMaking(false)} />}
    </>
  );
}

function None() {
  return (
    <Empty icon="bell" title={said.none}>
      <span class="s prose-narrow">{said.noneHint}</span>
    </Empty>
  );
}

interface TableProps {
  readonly channels: readonly Channel[];
  reload(): void;
}

function Table({ channels, reload }: TableProps) {
  return (
    <VirtualTable
      label={said.label}
      tall
      rows={channels}
      head={
        <tr>
          <th>{head.name}</th>
          <th>{head.way}</th>
          <th>{head.last}</th>
          <th class="num">{head.waiting}</th>
          <th>{head.rules}</th>
          <th>{head.test}</th>
        </tr>
      }
      row={(one) => <Row key={one.name} channel={one} reload={reload} />}
    />
  );
}

function Row({ channel, reload }: { channel: Channel; reload(): void }) {
  return (
    <tr data-testid="channel-row" data-channel={channel.name}>
      <td>
        <a class="mono b" href={to(`/d/channel/${encodeURIComponent(channel.name)}`)}>
          {channel.name}
        </a>
      </td>
      <td class="t2">
        {said.way(channel.way, channel.host)}
        {channel.follow === "all" && <span class="t3 s"> {said.everything}</span>}
      </td>
      <td>
        <Last channel={channel} />
      </td>
      <td class="num" data-label={head.waiting}>
        {channel.waiting}
      </td>
      <td class="t2" data-label={head.rules}>
        {channel.rules.join(", ") || said.nobody}
      </td>
      <td>
        <TestButton name={channel.name} done={reload} />
      </td>
    </tr>
  );
}

function Last({ channel }: { channel: Channel }) {
  const { outcome, at_ms: atMs, failing_ms: failing } = channel;
  if (outcome === null || atMs === null) return <span class="t3">{said.never}</span>;
  const at = (ms: number) => clockOn(ms, listNowMs.value, zone.value, "second");
  return (
    <>
      <Outcome outcome={outcome} />{" "}
      <span class="t2 s">
        {said.came(channel.status, channel.took_ms ?? 0)}, {at(atMs)}
        {failing !== null && `; ${said.failing(at(failing))}`}
      </span>
      {channel.why && <span class="t2 s why">{channel.why}</span>}
    </>
  );
}
