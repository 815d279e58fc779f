/** Output of objects in the format of `-o`. */

import { printable } from '../base/text/printable.ts';
import { jsonDocument } from './core/encode.ts';
import { ClientError } from './core/errors.ts';
import type { FlagSpec, Flags } from './core/flags.ts';
import { parseJsonPath, parseRelaxedPath, printed } from './core/json-path.ts';
import { type AnyObject, withoutManagedFields } from './core/objects.ts';
import { printedKind } from './core/resources.ts';
import { layout } from './core/table.ts';
import { yamlText } from './core/yaml-writer.ts';
import type { VerbContext } from './port.ts';

export const OUTPUT_FLAGS = {
  output: {
    type: 'string',
    short: 'o',
    value: 'FORMAT',
    help: 'json, yaml, name, wide, jsonpath=TEMPLATE, jsonpath-file=FILE, custom-columns=SPEC or custom-columns-file=FILE',
  },
  'show-managed-fields': { type: 'bool', help: 'keep managedFields in json and yaml' },
  'allow-missing-template-keys': { type: 'bool', help: 'missing fields of a template are no error' },
} as const satisfies Record<string, FlagSpec>;

/** Returns the text of one object or of a list. */
export type ObjectPrinter = (object: AnyObject) => string;

const FORMATS = 'custom-columns,custom-columns-file,json,jsonpath,jsonpath-as-json,jsonpath-file,name,wide,yaml';

/** Printer for the format of `-o`. Throws ClientError for an unknown format. */
export async function objectPrinter(context: VerbContext): Promise<ObjectPrinter | undefined> {
  const { flags, system } = context;
  const format = flags.text('output');
  const [kind = '', argument] = splitOnce(format);
  const template = async (suffix: string): Promise<string> => {
    if (argument === undefined || argument === '')
      throw new ClientError(`template format specified but no template given`);
    return kind.endsWith(suffix) ? Buffer.from(await system.readFile(argument)).toString('utf8') : argument;
  };
  switch (kind) {
    case '':
    case 'wide':
      return undefined;
    case 'json':
      return (object) => jsonDocument(clean(object, flags));
    case 'yaml': {
      let isFirst = true;
      return (object) => {
        const separator = isFirst ? '' : '---\n';
        isFirst = false;
        return separator + yamlText(clean(object, flags));
      };
    }
    case 'name':
      return (object) =>
        itemsOf(object)
          .map((item) => `${nameOf(item)}\n`)
          .join('');
    case 'jsonpath':
    case 'jsonpath-file': {
      const path = parseJsonPath(await template('-file'));
      const allowMissing = !flags.has('allow-missing-template-keys') || flags.bool('allow-missing-template-keys');
      return (object) => path.render(object, allowMissing);
    }
    case 'jsonpath-as-json': {
      const path = parseJsonPath(await template('-file'));
      return (object) => jsonDocument(path.find(object));
    }
    case 'custom-columns':
    case 'custom-columns-file':
      return customColumns(await template('-file'), flags.bool('no-headers'), kind.endsWith('-file'));
    default:
      throw new ClientError(
        `unable to match a printer suitable for the output format "${format}", allowed formats are: ${FORMATS}`,
      );
  }
}

function splitOnce(text: string): [string, string?] {
  const at = text.indexOf('=');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

const clean = (object: AnyObject, flags: Flags): AnyObject => {
  if (flags.bool('show-managed-fields')) return object;
  const cleaned = withoutManagedFields(object);
  return cleaned.items === undefined ? cleaned : { ...cleaned, items: cleaned.items.map(withoutManagedFields) };
};

export const itemsOf = (object: AnyObject): readonly AnyObject[] =>
  Array.isArray(object.items) && (object.kind ?? '').endsWith('List') ? object.items : [object];

/** Name in output, such as `deployment.apps/web`. */
export function nameOf(object: AnyObject): string {
  const version = object.apiVersion ?? '';
  const group = version.includes('/') ? (version.split('/')[0] ?? '') : '';
  return printable(`${printedKind({ kind: object.kind ?? '', group })}/${object.metadata?.name ?? ''}`);
}

function customColumns(spec: string, noHeaders: boolean, fromFile: boolean): ObjectPrinter {
  const columns = fromFile ? columnsOfFile(spec) : columnsOf(spec);
  return (object) => {
    const rows = itemsOf(object).map((item) =>
      columns.map(({ path }) => {
        const found = path.find(item);
        return found.length === 0
          ? '<none>'
          : found.map((value) => (value === null ? '<none>' : printable(printedInColumn(value)))).join(',');
      }),
    );
    return layout([...(noHeaders ? [] : [columns.map(({ header }) => header)]), ...rows]);
  };
}

/** Text of a value in a column. Lists and maps are printed as Go's `%v` does. */
function printedInColumn(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printedInColumn).join(' ')}]`;
  if (typeof value === 'object' && value !== null)
    return `map[${Object.entries(value)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, inner]) => `${key}:${printedInColumn(inner)}`)
      .join(' ')}]`;
  return printed(value);
}

interface Column {
  readonly header: string;
  readonly path: ReturnType<typeof parseRelaxedPath>;
}

function columnsOf(spec: string): Column[] {
  return spec.split(',').map((part) => {
    const at = part.indexOf(':');
    if (at < 0) throw new ClientError(`unexpected custom-columns spec: ${part}, expected <header>:<json-path-expr>`);
    return { header: part.slice(0, at), path: parseRelaxedPath(part.slice(at + 1)) };
  });
}

function columnsOfFile(text: string): Column[] {
  const [headers = '', paths = ''] = text.split('\n');
  const names = headers.trim().split(/\s+/);
  const specs = paths.trim().split(/\s+/);
  if (names.length !== specs.length)
    throw new ClientError(`number of headers (${names.length}) and field specifications (${specs.length}) don't match`);
  return names.map((header, index) => ({ header, path: parseRelaxedPath(specs[index] ?? '') }));
}

/**
 * Prints the object in the requested format, otherwise a line such as `pod/web created` with the mode of `--dry-run`.
 */
export async function printOutcome(context: VerbContext, object: AnyObject, outcome: string): Promise<void> {
  const printer = await objectPrinter(context);
  if (printer !== undefined) return context.io.out(printer(object));
  context.io.out(`${nameOf(object)} ${outcome}${dryRunSuffix(context.flags)}\n`);
}

export const DRY_RUN_FLAG: FlagSpec = {
  type: 'string',
  default: 'none',
  bare: 'unchanged',
  value: 'MODE',
  help: 'none, server or client: show what would happen',
};

/** Mode of `--dry-run`. Throws ClientError for an unknown mode. */
export function dryRunOf(flags: Flags): 'none' | 'server' | 'client' {
  const mode = flags.text('dry-run');
  if (mode === '' || mode === 'none' || mode === 'false') return 'none';
  if (mode === 'server' || mode === 'client') return mode;
  throw new ClientError(`Invalid dry-run value (${mode}). Must be "none", "server", or "client".`);
}

export function dryRunSuffix(flags: Flags): string {
  const mode = dryRunOf(flags);
  return mode === 'none' ? '' : mode === 'client' ? ' (dry run)' : ' (server dry run)';
}

/** Query parameters of a write. */
export const writeQuery = (flags: Flags, manager: string): Record<string, string | undefined> => ({
  fieldManager: flags.text('field-manager') || manager,
  dryRun: dryRunOf(flags) === 'server' ? 'All' : undefined,
});

/** Value of `fieldValidation` for `--validate`. */
export function validationOf(flag: string): string {
  switch (flag) {
    case 'ignore':
    case 'false':
      return 'Ignore';
    case 'warn':
      return 'Warn';
    case '':
    case 'true':
    case 'strict':
      return 'Strict';
    default:
      throw new ClientError(
        `invalid - validate option ${JSON.stringify(flag)}; must be one of: strict (or true), warn, ignore (or false)`,
      );
  }
}
