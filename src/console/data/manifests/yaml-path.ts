/**
 * Finds the field at a position of YAML text by indentation, because the text is often incomplete while the user types.
 */

export interface YamlPosition {
  readonly apiVersion: string;
  readonly kind: string;
  /** Keys that lead to the object that contains the position. List items add no key. */
  readonly parents: readonly string[];
  /** Key of the line; '' for an empty line. */
  readonly key: string;
  /** Whether the position is in the value of the key. */
  readonly isInValue: boolean;
}

interface Line {
  /** Column of the last dash that starts a list item; -1 if the line has none. */
  readonly dash: number;
  readonly column: number;
  readonly key: string;
  readonly hasColon: boolean;
  readonly colon: number;
}

const MAX_LINES_UP = 5_000;

function lineOf(text: string): Line | undefined {
  const [, lead = '', rest = ''] = /^(\s*(?:-\s+|-$)*)(.*)$/.exec(text) ?? [];
  if (rest.startsWith('#')) return undefined;
  const [, key = '', colon] = /^["']?([\w./-]*)["']?(\s*:(?=\s|$))?/.exec(rest) ?? [];
  return {
    dash: lead.lastIndexOf('-'),
    column: lead.length,
    key,
    hasColon: colon !== undefined,
    colon: colon === undefined ? -1 : text.indexOf(':', lead.length),
  };
}

export function yamlPosition(text: string, offset: number): YamlPosition | undefined {
  const before = text.slice(0, offset);
  const start = Math.max(0, before.lastIndexOf('\n---') + 1);
  const next = text.indexOf('\n---', Math.max(start, offset - 1) + 1);
  const lines = text.slice(start, next < 0 ? undefined : next).split('\n');
  const row = before.slice(start).split('\n').length - 1;
  const column = offset - (before.lastIndexOf('\n') + 1);
  const top = (pattern: RegExp): string => lines.map((line) => pattern.exec(line)?.[1]).find(Boolean) ?? '';
  const own = lineOf(lines[row] ?? '');
  if (own === undefined) return undefined;
  const isEmpty = (lines[row] ?? '').trim() === '';
  const parents: string[] = [];
  // A line above whose key is left of this column is a parent.
  let left = own.dash >= 0 ? own.dash + 1 : isEmpty ? column : own.column;
  let isInItem = own.dash < 0;
  let itemColumn = isEmpty ? column : own.column;
  for (let index = row - 1; index >= Math.max(0, row - MAX_LINES_UP) && left > 0; index--) {
    const text = lines[index] ?? '';
    if (text.trim() === '' || text.startsWith('---')) continue;
    const line = lineOf(text);
    if (line === undefined) continue;
    if (line.hasColon && line.column < left) {
      parents.unshift(line.key);
      left = line.dash >= 0 ? line.dash + 1 : line.column;
      isInItem = line.dash < 0;
      itemColumn = line.column;
    } else if (isInItem && line.dash >= 0 && line.column === itemColumn) {
      left = line.dash + 1;
      isInItem = false;
    }
  }
  return {
    apiVersion: top(/^apiVersion:\s*["']?([^"'#\s]+)/),
    kind: top(/^kind:\s*["']?([^"'#\s]+)/),
    parents,
    key: own.key,
    isInValue: own.hasColon && column > own.colon,
  };
}
