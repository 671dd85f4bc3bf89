/** Everything that is defined, by kind and name. */
import { useLoad } from "../../api/load";
import type { Definition, Page } from "../../api/shapes";
import { useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { VirtualTable } from "../../components/virtual-table";
import { session } from "../../lib/session";
import { clockOn } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { words } from "../../messages.en";

export default function Definitions() {
  useTitle(words.definitions.title);
  const ready = session.value?.signed_in ?? false;
  const { body, problem, reload } = useLoad<Page<Definition>>(ready ? "/definitions" : null);
  const head = words.definitions.head;
  return (
    <>
      <div class="bar">
        <h1>{words.definitions.title}</h1>
        <span class="sub hide-s">{words.definitions.sub}</span>
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {body?.items.length === 0 && <Empty title={words.definitions.none} />}
      {body && body.items.length > 0 && (
        <div class="panel">
          <VirtualTable
            label={words.definitions.title}
            tall
            rows={body.items}
            head={
              <tr>
                <th>{head.kind}</th>
                <th>{head.name}</th>
                <th class="num">{head.version}</th>
                <th>{head.by}</th>
                <th>{head.at}</th>
              </tr>
            }
            row={(one) => (
              <tr key={`${one.kind}/${one.name}`}>
                <td class="t2">{one.kind}</td>
                <td>
                  <a class="mono" href={to(`/d/${one.kind}/${one.name}`)}>
                    {one.name}
                  </a>
                </td>
                <td class="num">{one.version}</td>
                <td class="t2 mono s">{one.by}</td>
                <td class="t2">{clockOn(one.at_ms, nowMs.value, zone.value)}</td>
              </tr>
            )}
          />
        </div>
      )}
    </>
  );
}
