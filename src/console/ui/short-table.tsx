/** Table of few rows that cannot be sorted. Wide tables scroll in a region that is operated by keyboard. */
import type { ComponentChildren } from 'preact';
import { sanitizeLines } from '../data/plain-text.ts';

export interface ShortTableProps {
  readonly label: string;
  /** Default: the label. */
  readonly caption?: string;
  /** Whether only screen readers get the caption. */
  readonly hasHiddenCaption?: boolean;
  readonly columns: readonly string[];
  readonly rows: readonly { readonly key: string; readonly cells: readonly ComponentChildren[] }[];
}

export const ShortTable = ({ label, caption = label, hasHiddenCaption = false, columns, rows }: ShortTableProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard
  <section class="scroll rows" aria-label={label} tabIndex={0}>
    <table>
      <caption class={hasHiddenCaption ? 'hidden' : ''}>{caption}</caption>
      <thead>
        <tr>
          {columns.map((each) => (
            <th key={each} scope="col">
              {each}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {cells.map((cell, index) => (
              <td key={columns[index]} data-column={columns[index]}>
                {typeof cell === 'string' ? sanitizeLines(cell) : cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
    {rows.length === 0 ? <p class="muted">There are none.</p> : null}
  </section>
);
