/**
 * Server-side tables of any resource as a live collection. Each row contains the metadata of its object. Source:
 * meta.k8s.io/v1 Table.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { FeedSource } from '../watch/feed.ts';

export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** Columns with priority 0 are always shown; other columns are shown on request. */
  readonly priority: number;
}

/** A row. Its metadata makes it usable as an object of a feed. */
export interface TableRow extends KubeObject {
  readonly cells: readonly unknown[];
}

export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

interface WireTable {
  readonly kind?: string;
  readonly columnDefinitions?: readonly Partial<TableColumn>[];
  readonly rows?: readonly { readonly cells?: readonly unknown[]; readonly object?: KubeObject }[];
}

/** `onColumns` is called with the columns of each list. */
export function tableSource(
  path: string,
  selectors: { readonly labelSelector?: string | undefined; readonly fieldSelector?: string | undefined },
  onColumns: (columns: readonly TableColumn[]) => void,
): FeedSource<TableRow> {
  return {
    path,
    ...selectors,
    accept: TABLE,
    itemsOf: (list) => {
      const table = list as WireTable;
      if ((table.columnDefinitions ?? []).length > 0) onColumns(columnsOf(table));
      return rowsOf(table);
    },
    itemOf: (object) => rowsOf(object as WireTable)[0],
  };
}

export function columnsOf({ columnDefinitions = [] }: WireTable): readonly TableColumn[] {
  return columnDefinitions.map(({ name = '', type = 'string', format = '', description = '', priority = 0 }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
}

function rowsOf({ rows = [] }: WireTable): readonly TableRow[] {
  return rows.map(({ cells = [], object }) => ({ cells, metadata: object?.metadata ?? {} }));
}

export function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}

/** Compares cells: numbers by value, durations such as `5m` by length, other texts by their characters. */
export function compareCells(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const left = cellText(a);
  const right = cellText(b);
  const leftSeconds = secondsOf(left);
  const rightSeconds = secondsOf(right);
  if (leftSeconds !== undefined && rightSeconds !== undefined) return leftSeconds - rightSeconds;
  return left.localeCompare(right, 'en', { numeric: true });
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, y: 31_536_000 };

function secondsOf(text: string): number | undefined {
  if (!/^(?:\d+[smhdy])+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, count = '0', unit = 's'] of text.matchAll(/(\d+)([smhdy])/g))
    seconds += Number(count) * (SECONDS[unit] ?? 0);
  return seconds;
}

/** Whether a row contains all words of a filter. */
export function matchesFilter(texts: readonly string[], filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const haystack = texts.join('\u0000').toLowerCase();
  return words.every((word) => haystack.includes(word));
}
