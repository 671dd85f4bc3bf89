/** The field and the order above a list of alerts or rules; both stand in the address. */
import { Empty } from "../../components/notes";
import { current, replaceParams } from "../../lib/router";
import { alertWords } from "../../messages.alerts.en";

const said = alertWords.seek;

/** Returns what somebody looks for; empty for everything. */
export const wantedNow = (): string => current.value.params.get("q") ?? "";

interface SeekProps<T extends string> {
  readonly label: string;
  readonly orders: readonly [T, ...T[]];
  readonly order: T;
}

/** The controls. */
export function Seek<T extends string>({ label, orders, order }: SeekProps<T>) {
  const names: Readonly<Record<string, string>> = said.orders;
  return (
    <div class="row wrap seek">
      <input
        class="field grow"
        type="search"
        data-testid="seek"
        aria-label={label}
        placeholder={label}
        autocomplete="off"
        spellcheck={false}
        value={wantedNow()}
        onInput={(input) => replaceParams({ q: input.currentTarget.value || null })}
      />
      <label class="row t2 s">
        {said.sort}
        <select
          class="sel"
          data-testid="sort"
          value={order}
          onChange={(change) => {
            const { value } = change.currentTarget;
            replaceParams({ sort: value === orders[0] ? null : value });
          }}
        >
          {orders.map((one) => (
            <option key={one} value={one}>
              {names[one]}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** What stands where nothing is found. */
export function NotFound() {
  return (
    <Empty icon="search" title={said.none(wantedNow())}>
      <button type="button" class="btn sm" onClick={() => replaceParams({ q: null })}>
        {said.clear}
      </button>
    </Empty>
  );
}
