/** Text of `describe`: lines with tab stops that are aligned like Go's text/tabwriter does (padding 2). */

import { printable } from '../../base/text/printable.ts';
import { ageOf, describedTime } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';

const PADDING = 2;
const MAX_ANNOTATION_LENGTH = 140;
const HIDDEN_ANNOTATIONS: ReadonlySet<string> = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

/** Events of an object; undefined if they are not shown. */
export type Events = readonly AnyObject[] | undefined;

/** Collects the lines of a page. Each level indents by two spaces. */
export class Page {
  #sections: string[] = [];
  #text = '';

  line(level: number, text: string): this {
    this.#text += `${'  '.repeat(level)}${printable(text)}\n`;
    return this;
  }

  /** Adds `Title:<tab>value`; adds nothing if the value is missing. */
  field(level: number, title: string, value: string | number | undefined): this {
    return value === undefined || value === '' ? this : this.line(level, `${title}:\t${value}`);
  }

  /** Adds `Title:<tab>value`, with `<none>` for a missing value. */
  required(level: number, title: string, value: string | number | undefined): this {
    return this.line(level, `${title}:\t${value === undefined || value === '' ? '<none>' : value}`);
  }

  /** Adds a map with one line per entry. `title` includes its indentation. */
  map(title: string, entries: Readonly<Record<string, string>>): this {
    return this.lines(
      title,
      Object.entries(entries)
        .sort(byKey)
        .map(([key, value]) => `${key}=${value}`),
    );
  }

  /** Adds a list with one line per entry. The first entry is in the title's line. */
  lines(title: string, values: readonly string[]): this {
    if (values.length === 0) return this.line(0, `${title}:\t<none>`);
    for (const [index, value] of values.entries()) this.line(0, index === 0 ? `${title}:\t${value}` : `\t${value}`);
    return this;
  }

  annotations(title: string, annotations: Readonly<Record<string, string>>): this {
    const shown = Object.entries(annotations)
      .filter(([key]) => !HIDDEN_ANNOTATIONS.has(key))
      .sort(byKey);
    if (shown.length === 0) return this.line(0, `${title}:\t<none>`);
    for (const [index, [key, raw]] of shown.entries()) {
      const value = raw.replace(/\n$/, '');
      const start = index === 0 ? `${title}:\t` : '\t';
      if (key.length + value.length + 2 <= MAX_ANNOTATION_LENGTH && !value.includes('\n'))
        this.line(0, `${start}${key}: ${value}`);
      else {
        this.line(0, `${start}${key}:`);
        for (const part of value.split('\n')) this.line(0, `\t  ${shortened(part)}`);
      }
    }
    return this;
  }

  /** Ends the alignment: later lines are not aligned with earlier ones. */
  flush(): this {
    this.#sections.push(tabulate(this.#text));
    this.#text = '';
    return this;
  }

  events(events: Events, now: number): this {
    if (events === undefined) return this;
    if (events.length === 0) return this.line(0, 'Events:\t<none>');
    this.flush()
      .line(0, 'Events:')
      .line(1, 'Type\tReason\tAge\tFrom\tMessage')
      .line(1, '----\t------\t----\t----\t-------');
    for (const event of events) {
      const path = textAt(event, 'involvedObject', 'fieldPath');
      const message = textAt(event, 'message').trim();
      const source = textAt(event, 'source', 'component') || textAt(event, 'reportingComponent');
      this.line(
        1,
        [
          textAt(event, 'type'),
          textAt(event, 'reason'),
          interval(event, now),
          source,
          path === '' ? message : `${path}: ${message}`,
        ].join('\t'),
      );
    }
    return this;
  }

  /** The lines after the last aligned section, with their tabs. */
  unaligned(): string {
    return this.#text;
  }

  toString(): string {
    return this.#sections.join('') + tabulate(this.#text);
  }
}

const byKey = ([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number =>
  left < right ? -1 : 1;

const shortened = (text: string): string =>
  text.length > MAX_ANNOTATION_LENGTH - 2 ? `${text.slice(0, MAX_ANNOTATION_LENGTH - 2)}...` : text;

function interval(event: AnyObject, now: number): string {
  const first = ageOf(textAt(event, 'eventTime') || textAt(event, 'firstTimestamp'), now);
  const series = numberAt(event, 0, 'series', 'count');
  if (series > 0) return `${ageOf(textAt(event, 'series', 'lastObservedTime'), now)} (x${series} over ${first})`;
  const count = numberAt(event, 1, 'count');
  return count > 1 ? `${ageOf(textAt(event, 'lastTimestamp'), now)} (x${count} over ${first})` : first;
}

/**
 * Aligns cells that end with a tab. Consecutive lines that have a cell in a column share the column's width. The last
 * cell of a line belongs to no column.
 */
export function tabulate(text: string): string {
  const lines = text.split('\n').map((line) => line.split('\t'));
  const widths = lines.map((): number[] => []);
  const align = (from: number, to: number, column: number): void => {
    for (let start = from; start < to; start += 1) {
      if (column >= (lines[start] as string[]).length - 1) continue;
      let end = start;
      let width = 0;
      for (; end < to && column < (lines[end] as string[]).length - 1; end += 1)
        width = Math.max(width, [...(lines[end]?.[column] ?? '')].length + PADDING);
      for (let line = start; line < end; line += 1) (widths[line] as number[])[column] = width;
      align(start, end, column + 1);
      start = end - 1;
    }
  };
  align(0, lines.length, 0);
  return lines
    .map((cells, line) =>
      cells
        .map((cell, column) =>
          column === cells.length - 1
            ? cell
            : cell + ' '.repeat(Math.max(0, (widths[line]?.[column] ?? 0) - [...cell].length)),
        )
        .join(''),
    )
    .join('\n');
}

/** Adds name, namespace, labels and annotations, with which most pages begin. */
export function metadataLines(page: Page, object: AnyObject): Page {
  const { name = '', namespace } = object.metadata ?? {};
  page.line(0, `Name:\t${name}`);
  if (namespace !== undefined) page.line(0, `Namespace:\t${namespace}`);
  return labelLines(page, object);
}

export const labelLines = (page: Page, object: AnyObject): Page =>
  page
    .map('Labels', mapAt(object, 'metadata', 'labels'))
    .annotations('Annotations', mapAt(object, 'metadata', 'annotations'));

export const timeAt = (object: unknown, ...path: readonly (string | number)[]): string =>
  describedTime(textAt(object, ...path));

/** `Kind/name` of the controlling owner; empty if there is none. */
export function controllerOf(object: AnyObject): string {
  const owner = (object.metadata?.ownerReferences ?? []).find(({ controller }) => controller === true);
  return owner === undefined ? '' : `${owner.kind ?? ''}/${owner.name ?? ''}`;
}

/** Adds the conditions, each as `Type Status Reason`. */
export function conditionLines(page: Page, object: AnyObject): void {
  const conditions = listAt(object, 'status', 'conditions');
  if (conditions.length === 0) return;
  page.line(0, 'Conditions:').line(1, 'Type\tStatus\tReason').line(1, '----\t------\t------');
  for (const each of conditions)
    page.line(1, `${textAt(each, 'type')} \t${textAt(each, 'status')}\t${textAt(each, 'reason')}`);
}

/** Label selector as text, such as `app=web,tier in (a,b)`, sorted by key. */
export function selectorText(selector: unknown): string {
  const expressions = listAt(selector, 'matchExpressions').map((each): readonly [string, string] => {
    const key = textAt(each, 'key');
    const list = textsAt(each, 'values').toSorted().join(',');
    switch (textAt(each, 'operator')) {
      case 'In':
        return [key, `${key} in (${list})`];
      case 'NotIn':
        return [key, `${key} notin (${list})`];
      case 'DoesNotExist':
        return [key, `!${key}`];
      default:
        return [key, key];
    }
  });
  const labels = Object.entries(mapAt(selector, 'matchLabels')).map(
    ([key, value]) => [key, `${key}=${value}`] as const,
  );
  return (
    [...labels, ...expressions]
      .sort(byKey)
      .map(([, text]) => text)
      .join(',') || '<none>'
  );
}

/** Like `listAt`, for lists of texts and numbers. */
export function textsAt(object: unknown, ...path: readonly (string | number)[]): string[] {
  const value = fieldAt(object, ...path);
  return Array.isArray(value) ? value.map(String) : [];
}

/** A list in Go's format, such as `[a b]`. */
export const goList = (object: unknown, ...path: readonly (string | number)[]): string =>
  `[${textsAt(object, ...path).join(' ')}]`;

/** Adds a table with a header that is underlined with dashes. */
export function tableLines(page: Page, level: number, header: readonly string[], rows: readonly string[][]): Page {
  page.line(level, header.join('\t')).line(level, header.map((title) => '-'.repeat(title.length)).join('\t'));
  for (const row of rows) page.line(level, row.join('\t'));
  return page;
}
