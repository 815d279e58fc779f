/** Prints command output as tables, JSON and YAML. */
import { printableLine } from '../base/text/printable.ts';
import { type Flag, type FlagValues, UsageError } from './command.ts';

export const OUTPUT_FLAG: Flag = {
  type: 'string',
  short: 'o',
  value: 'FORMAT',
  values: ['json', 'yaml', 'wide'],
  help: 'json, yaml or wide',
};

/** Rejects unknown output formats before any request is sent. Throws UsageError. */
export function checkFormat(flags: FlagValues): void {
  const format = flags['output'];
  if (format !== undefined && format !== 'json' && format !== 'yaml' && format !== 'wide') {
    throw new UsageError(`-o ${String(format)}: give json, yaml or wide`);
  }
}

/**
 * Text of the document in the requested format; undefined if a table was requested. Throws UsageError for an unknown
 * format.
 */
export async function printDocument(flags: FlagValues, document: unknown): Promise<string | undefined> {
  checkFormat(flags);
  switch (flags['output']) {
    case undefined:
    case 'wide':
      return undefined;
    case 'json':
      return `${JSON.stringify(document, undefined, 2)}\n`;
    default:
      return (await import('yaml')).stringify(document, { lineWidth: 0 });
  }
}

/** Table in kubectl's layout: columns are three spaces apart, and the last column is not padded. */
export function printTable(header: readonly string[], given: readonly (readonly string[])[]): string {
  // Names and texts may come from other hosts, so control characters are escaped.
  const rows = given.map((row) => row.map(printableLine));
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)));
  return [header, ...rows]
    .map(
      (row) =>
        `${header
          .map((_, column) => (row[column] ?? '').padEnd((widths[column] ?? 0) + 3))
          .join('')
          .trimEnd()}\n`,
    )
    .join('');
}
