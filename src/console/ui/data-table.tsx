/** Table with filter and sorting. For long lists, only the visible rows are in the page. */
import type { ComponentChildren } from 'preact';
import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import { compareCells, matchesFilter } from '../data/api/table.ts';
import { sanitizeLines } from '../data/plain-text.ts';
import type { Snapshot } from '../data/watch/feed.ts';
import { useShortcut } from '../shell/keyboard.ts';
import { place, setQuery } from '../shell/router.ts';

export interface Column<T> {
  readonly name: string;
  /** Text for sorting and filtering; also the content of the cell if there is no `view`. */
  readonly text: (item: T) => string | number;
  readonly view?: (item: T) => ComponentChildren;
}

export interface DataTableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** State of the list, which determines the text that is shown if there are no rows. */
  readonly snapshot?: Snapshot<unknown>;
}

const ROW_HEIGHT = 34;
const OVERSCAN = 10;
const VIRTUAL_FROM = 150;

interface Row<T> {
  readonly item: T;
  readonly texts: readonly (string | number)[];
}

function useRows<T>(props: DataTableProps<T>, filter: string, sort: string): readonly Row<T>[] {
  const { columns, items } = props;
  return useMemo(() => {
    const rows = items
      .map((item) => ({ item, texts: columns.map(({ text }) => text(item)) }))
      .filter(({ texts }) => matchesFilter(texts.map(String), filter));
    const name = sort.replace(/^-/, '');
    const index = Math.max(
      0,
      columns.findIndex((column) => column.name === name),
    );
    const sign = sort.startsWith('-') ? -1 : 1;
    return rows.sort((a, b) => sign * compareCells(a.texts[index], b.texts[index]));
  }, [columns, items, filter, sort]);
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { label, columns, items, keyOf, snapshot } = props;
  const { query } = place.value;
  const filter = query.get('filter') ?? '';
  const [sort, setSort] = useState(columns[0]?.name ?? '');
  const rows = useRows(props, filter, sort);
  const input = useRef<HTMLInputElement>(null);
  const focus = useCallback(() => input.current?.focus(), []);
  useShortcut('f', 'filter the list', focus);
  const [top, setTop] = useState(0);
  const isVirtual = rows.length > VIRTUAL_FROM;
  const first = isVirtual ? Math.max(0, Math.floor(top / ROW_HEIGHT) - OVERSCAN) : 0;
  const last = isVirtual ? Math.min(rows.length, first + 40 + 2 * OVERSCAN) : rows.length;
  const shown = rows.slice(first, last);
  const order = (name: string): 'ascending' | 'descending' | 'none' =>
    sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : 'none';
  return (
    <div>
      <div class="row">
        <label>
          <span class="hidden">Filter {label}</span>
          <input
            ref={input}
            type="search"
            placeholder="Filter (f)"
            value={filter}
            onInput={({ currentTarget }) => setQuery('filter', currentTarget.value)}
          />
        </label>
        <span class="muted" aria-live="polite">
          {rows.length === items.length ? `${items.length}` : `${rows.length} of ${items.length}`}{' '}
          <Freshness of={snapshot} />
        </span>
      </div>
      <section
        class={isVirtual ? 'scroll virtual' : 'scroll rows'}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard
        tabIndex={0}
        onScroll={({ currentTarget }) => isVirtual && setTop(currentTarget.scrollTop)}
      >
        <table aria-rowcount={rows.length + 1}>
          <caption class="hidden">{label}</caption>
          <thead>
            <tr>
              {columns.map(({ name }) => (
                <th key={name} scope="col" aria-sort={order(name)}>
                  <button type="button" class="plain sort" onClick={() => setSort(sort === name ? `-${name}` : name)}>
                    {name}
                    <span aria-hidden="true">
                      {order(name) === 'ascending' ? ' ▲' : order(name) === 'descending' ? ' ▼' : ''}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 ? <Spacer rows={first} columns={columns.length} /> : null}
            {shown.map(({ item, texts }, index) => (
              <tr key={keyOf(item)} aria-rowindex={first + index + 2}>
                {columns.map(({ name, view }, column) => (
                  <td key={name} data-column={name}>
                    {view === undefined ? sanitizeLines(String(texts[column] ?? '')) : view(item)}
                  </td>
                ))}
              </tr>
            ))}
            {last < rows.length ? <Spacer rows={rows.length - last} columns={columns.length} /> : null}
          </tbody>
        </table>
      </section>
      {rows.length === 0 ? <Empty filter={filter} snapshot={snapshot} /> : null}
    </div>
  );
}

const Spacer = ({ rows, columns }: { readonly rows: number; readonly columns: number }) => (
  <tr>
    <td colSpan={columns} class="spacer" style={{ height: `${rows * ROW_HEIGHT}px` }} />
  </tr>
);

function Empty({ filter, snapshot }: { readonly filter: string; readonly snapshot: Snapshot<unknown> | undefined }) {
  if (snapshot?.state === 'loading') return <p class="muted">The list is being read.</p>;
  if (snapshot?.state === 'failed') return <p class="bad">{snapshot.error?.message}</p>;
  return <p class="muted">{filter === '' ? 'There are none.' : 'No entry matches the filter.'}</p>;
}

/** Shows a note if the shown data may be outdated. */
export function Freshness({ of: snapshot }: { readonly of: Snapshot<unknown> | undefined }) {
  if (snapshot === undefined || snapshot.state === 'live' || snapshot.state === 'loading') return null;
  if (snapshot.state === 'failed') return null;
  return <span class="warn">· reconnecting, the data may be old</span>;
}
