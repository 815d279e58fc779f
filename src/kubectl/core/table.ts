/** Server-side tables and their layout on a terminal. Source: meta.k8s.io/v1 Table, k8s.io/cli-runtime/pkg/printers. */
import { printable } from '../../base/text/printable.ts';

export interface Table {
  readonly kind?: string;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly columnDefinitions?: readonly ColumnDefinition[];
  readonly rows?: readonly TableRow[];
}

export interface ColumnDefinition {
  readonly name: string;
  readonly type?: string;
  /** Columns with priority 0 are always shown, other columns only with `-o wide`. */
  readonly priority?: number;
}

export interface TableRow {
  readonly cells?: readonly unknown[];
  readonly object?: RowObject;
}

export interface RowObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

export interface TableStyle {
  readonly wide: boolean;
  readonly withNamespace: boolean;
  /** Prefix of names, such as `pod/`; used if several kinds are printed. */
  readonly namePrefix: string;
  readonly showLabels: boolean;
  /** Labels that are shown in a column each. */
  readonly labelColumns: readonly string[];
}

const NONE = '<none>';

/** Cells of the header and of all rows as texts. */
export function tableCells(
  { columnDefinitions = [], rows = [] }: Table,
  style: TableStyle,
): { readonly header: readonly string[]; readonly rows: readonly (readonly string[])[] } {
  const shown = columnDefinitions.flatMap(({ priority = 0 }, index) => (priority === 0 || style.wide ? [index] : []));
  const header = [
    ...(style.withNamespace ? ['NAMESPACE'] : []),
    ...shown.map((index) => printable(String(columnDefinitions[index]?.name ?? '')).toUpperCase()),
    ...style.labelColumns.map((label) => (label.split('/').at(-1) ?? '').toUpperCase()),
    ...(style.showLabels ? ['LABELS'] : []),
  ];
  const nameColumn = columnDefinitions.findIndex(({ name }) => String(name).toUpperCase() === 'NAME');
  return {
    header,
    rows: rows.map(({ cells: found, object }) => {
      const cells: readonly unknown[] = Array.isArray(found) ? found : [];
      const labels = object?.metadata?.labels ?? {};
      return [
        ...(style.withNamespace ? [cellText(object?.metadata?.namespace ?? '')] : []),
        ...shown.map((index) => (index === nameColumn ? style.namePrefix : '') + cellText(cells[index])),
        ...style.labelColumns.map((label) => cellText(labels[label] ?? '')),
        ...(style.showLabels ? [printable(labelsText(labels))] : []),
      ];
    }),
  };
}

/** Labels as text, such as `a=1,b=2`; `<none>` if there are no labels. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(labels ?? {}).sort(([left], [right]) => (left < right ? -1 : 1));
  return entries.length === 0 ? NONE : entries.map(([key, value]) => `${key}=${value}`).join(',');
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '<none>';
  const text = Array.isArray(cell)
    ? cell.map(String).join(',')
    : typeof cell === 'object'
      ? JSON.stringify(cell)
      : String(cell);
  const line = /[\n\r]/.exec(text);
  return printable(line === null ? text : `${text.slice(0, line.index)}...`);
}

/** Smallest width of a column, as in kubectl. */
const MIN_WIDTH = 6;
const PADDING = 3;

/** Width of each column except the last one, which is not padded. */
export const columnWidths = (lines: readonly (readonly string[])[]): number[] => {
  const widths: number[] = [];
  for (const line of lines)
    for (const [column, cell] of line.entries())
      if (column < line.length - 1) widths[column] = Math.max(widths[column] ?? MIN_WIDTH, width(cell) + PADDING);
  return widths;
};

/** Lines with aligned columns. `widths` are the column widths of lines that were printed earlier for the same table. */
export function layout(lines: readonly (readonly string[])[], widths?: readonly number[]): string {
  const cells = lines.map((line) => line.map(printable));
  return aligned(cells, widths ?? columnWidths(cells));
}

function aligned(lines: readonly (readonly string[])[], widths: readonly number[]): string {
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) =>
            column === line.length - 1 ? cell : cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - width(cell))),
          )
          .join('')}\n`,
    )
    .join('');
}

/** Number of code points, as Go's tabwriter counts. */
const width = (text: string): number => [...text].length;
