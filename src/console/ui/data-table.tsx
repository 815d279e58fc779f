/** Table with filter and sorting. For long lists, only the visible rows are in the page. */
import type { ComponentChildren } from 'preact';
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { compareCells, matchesFilter } from '../data/api/table.ts';
import { sanitizeLines } from '../data/plain-text.ts';
import { type RowWindow, rowWindow } from '../data/row-window.ts';
import type { Snapshot } from '../data/watch/feed.ts';
import { useShortcut } from '../shell/keyboard.ts';
import { currentPlace, setQuery } from '../shell/router.ts';
import { currentNamespace } from './namespaces.tsx';

export interface Column<T> {
  readonly name: string;
  /** Text for sorting and filtering; also the content of the cell if there is no `view`. */
  readonly text: (item: T) => string | number;
  readonly view?: (item: T) => ComponentChildren;
  /** Whether the column has controls only, by which a list cannot be sorted. */
  readonly isControls?: boolean;
}

export interface DataTableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** State of the list, which determines the text that is shown if there are no rows. */
  readonly snapshot?: Pick<Snapshot<unknown>, 'state' | 'error'>;
}

/** Height of rows before the first measurement. */
const ROW_HEIGHT_PX = 34;
const MARGIN_PX = 600;
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

/**
 * Range of rows in the page. On small screens a row is a block, whose height depends on its texts, so the heights are
 * measured, and the average stands for rows that were never in the page.
 */
function useRowWindow<T>(rows: readonly Row<T>[], keyOf: (item: T) => string) {
  const region = useRef<HTMLElement>(null);
  const heights = useRef(new Map<string, number>());
  const width = useRef(0);
  const [top, setTop] = useState(0);
  const [estimate, setEstimate] = useState(ROW_HEIGHT_PX);
  const count = rows.length;
  const isVirtual = count > VIRTUAL_FROM;
  const all: RowWindow = { first: 0, end: count, before: 0, after: 0 };
  const window = isVirtual
    ? rowWindow({
        count,
        heightOf: (index) => heights.current.get(keyOf((rows[index] as Row<T>).item)),
        estimate,
        top,
        height: innerHeight,
        margin: MARGIN_PX,
      })
    : all;
  const measure = useCallback((): void => {
    if (!isVirtual || region.current === null) return;
    const { clientWidth } = region.current;
    // Rows have other heights at another width. Heights of rows that were removed must not accumulate.
    if (clientWidth !== width.current || heights.current.size > 2 * count) heights.current.clear();
    width.current = clientWidth;
    for (const row of region.current.querySelectorAll<HTMLElement>('tbody > tr[data-key]'))
      heights.current.set(row.dataset['key'] ?? '', row.getBoundingClientRect().height);
    const sum = [...heights.current.values()].reduce((total, each) => total + each, 0);
    // The average varies with each row; a change of the estimate renders again, so small changes are ignored.
    const average = heights.current.size === 0 ? ROW_HEIGHT_PX : Math.max(1, sum / heights.current.size);
    setEstimate((old) => (Math.abs(average - old) > old / 10 ? average : old));
  }, [isVirtual, count]);
  useLayoutEffect(measure);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (region.current !== null) observer.observe(region.current);
    return () => observer.disconnect();
  }, [measure]);
  return { ...window, region, isVirtual, onScroll: () => setTop(region.current?.scrollTop ?? 0) };
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { label, columns, items, keyOf, snapshot } = props;
  const { query } = currentPlace.value;
  const filter = query.get('filter') ?? '';
  const [sort, setSort] = useState(columns[0]?.name ?? '');
  const rows = useRows(props, filter, sort);
  const input = useRef<HTMLInputElement>(null);
  const focus = useCallback(() => input.current?.focus(), []);
  useShortcut('f', 'filter the list', focus);
  const { first, end, before, after, region, isVirtual, onScroll } = useRowWindow(rows, keyOf);
  const shown = rows.slice(first, end);
  const isNamespaced = columns.some(({ name }) => name === 'Namespace');
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
        ref={region}
        class={`scroll rows${isVirtual ? ' virtual' : ''}${rows.length === 0 ? ' empty' : ''}`}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard
        tabIndex={0}
        onScroll={onScroll}
      >
        <table aria-rowcount={rows.length + 1}>
          <caption class="hidden">{label}</caption>
          <thead>
            <tr>
              {columns.map(({ name, isControls }) =>
                isControls === true ? (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ) : (
                  <th key={name} scope="col" aria-sort={order(name)}>
                    <button type="button" class="plain sort" onClick={() => setSort(sort === name ? `-${name}` : name)}>
                      {name}
                      <span aria-hidden="true">
                        {order(name) === 'ascending' ? ' ▲' : order(name) === 'descending' ? ' ▼' : ''}
                      </span>
                    </button>
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {before > 0 ? <Spacer height={before} columns={columns.length} /> : null}
            {shown.map(({ item, texts }, index) => (
              <tr key={keyOf(item)} data-key={keyOf(item)} aria-rowindex={first + index + 2}>
                {columns.map(({ name, view }, column) => (
                  <td key={name} data-column={name}>
                    {view === undefined ? sanitizeLines(String(texts[column] ?? '')) : view(item)}
                  </td>
                ))}
              </tr>
            ))}
            {after > 0 ? <Spacer height={after} columns={columns.length} /> : null}
          </tbody>
        </table>
      </section>
      {rows.length === 0 ? <Empty filter={filter} isNamespaced={isNamespaced} snapshot={snapshot} /> : null}
    </div>
  );
}

const Spacer = ({ height, columns }: { readonly height: number; readonly columns: number }) => (
  <tr class="spacer">
    <td colSpan={columns} style={{ height: `${height}px` }} />
  </tr>
);

interface EmptyProps {
  readonly filter: string;
  readonly isNamespaced: boolean;
  readonly snapshot: Pick<Snapshot<unknown>, 'state' | 'error'> | undefined;
}

function Empty({ filter, isNamespaced, snapshot }: EmptyProps) {
  if (snapshot?.state === 'loading') return <p class="muted">The list is being read.</p>;
  if (snapshot?.state === 'failed') return <p class="bad">{snapshot.error?.message}</p>;
  if (filter !== '') return <Offer text="No entry matches the filter." label="Clear the filter" parameter="filter" />;
  const namespace = isNamespaced ? currentNamespace() : '';
  return namespace === '' ? (
    <p class="muted">There are none.</p>
  ) : (
    <Offer text={`There are none in namespace ${namespace}.`} label="Show all namespaces" parameter="ns" />
  );
}

/** Reason why a list is empty, with a button that removes the parameter of the location that causes it. */
const Offer = ({
  text,
  label,
  parameter,
}: {
  readonly text: string;
  readonly label: string;
  readonly parameter: string;
}) => (
  <p class="muted">
    {text}{' '}
    <button type="button" onClick={() => setQuery(parameter, undefined)}>
      {label}
    </button>
  </p>
);

/** Shows a note if the shown data may be outdated. */
export function Freshness({ of: snapshot }: { readonly of: Pick<Snapshot<unknown>, 'state'> | undefined }) {
  if (snapshot === undefined || snapshot.state === 'live' || snapshot.state === 'loading') return null;
  if (snapshot.state === 'failed') return null;
  return <span class="warn">· reconnecting, the data may be old</span>;
}
