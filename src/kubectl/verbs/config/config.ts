/** `config view` and changes of the kubeconfig's contexts. Source: k8s.io/kubectl/pkg/cmd/config. */

import { jsonDocument } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { parseJsonPath } from '../../core/json-path.ts';
import { layout } from '../../core/table.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import type { KubeconfigFile, VerbContext } from '../../port.ts';

export interface NamedEntry {
  readonly name: string;
  readonly cluster?: Record<string, unknown>;
  readonly user?: Record<string, unknown>;
  readonly context?: { readonly cluster?: string; readonly user?: string; readonly namespace?: string };
}

export const readKubeconfigOf = ({ flags, system }: VerbContext): Promise<KubeconfigFile> =>
  system.kubeconfig(flags.text('kubeconfig') || undefined);

/** Entries of the list in `field`: `clusters`, `contexts` or `users`. */
export const entriesIn = (document: Readonly<Record<string, unknown>>, field: string): readonly NamedEntry[] =>
  (document[field] ?? []) as readonly NamedEntry[];

export async function runView(context: VerbContext): Promise<number> {
  const { flags, io } = context;
  const given = flags.text('kubeconfig');
  const isMissing = given !== '' && !(await context.system.exists(given));
  const document = isMissing ? {} : (await readKubeconfigOf(context)).document;
  const current = flags.text('context') || String(document['current-context'] ?? '');
  const minified = flags.bool('minify') ? minify(document, current) : document;
  const shown = flags.bool('raw') ? minified : hidden(minified);
  const full = {
    apiVersion: 'v1',
    clusters: null,
    contexts: null,
    'current-context': '',
    kind: 'Config',
    users: null,
    ...shown,
  };
  const { preferences: _, ...rest } = full as Record<string, unknown>;
  const format = flags.text('output') || 'yaml';
  if (format === 'yaml') io.out(yamlText(rest));
  else if (format === 'json') io.out(jsonDocument(rest));
  else if (format.startsWith('jsonpath=')) io.out(parseJsonPath(format.slice('jsonpath='.length)).render(rest));
  else
    throw new ClientError(
      `unable to match a printer suitable for the output format "${format}", allowed formats are: json,jsonpath,yaml`,
    );
  return 0;
}

function minify(document: Readonly<Record<string, unknown>>, current: string): Record<string, unknown> {
  const named = (field: string): readonly NamedEntry[] => (document[field] ?? []) as readonly NamedEntry[];
  const context = named('contexts').find(({ name }) => name === current);
  if (context === undefined)
    throw new ClientError(
      current === '' ? 'current-context must exist in order to minify' : `cannot locate context ${current}`,
    );
  return {
    ...document,
    'current-context': current,
    contexts: [context],
    clusters: named('clusters').filter(({ name }) => name === context.context?.cluster),
    users: named('users').filter(({ name }) => name === context.context?.user),
  };
}

/** Replaces secrets with the placeholders of kubectl. */
function hidden(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const replaced = (
    entry: Record<string, unknown> | undefined,
    fields: Readonly<Record<string, string>>,
  ): Record<string, unknown> =>
    Object.fromEntries(Object.entries(entry ?? {}).map(([key, value]) => [key, fields[key] ?? value]));
  const each = <T>(field: string, change: (entry: NamedEntry) => T): readonly T[] | null =>
    (document[field] as readonly NamedEntry[] | undefined | null)?.map(change) ?? null;
  return {
    ...document,
    clusters: each('clusters', (entry) => ({
      ...entry,
      cluster: replaced(entry.cluster, { 'certificate-authority-data': 'DATA+OMITTED' }),
    })),
    users: each('users', (entry) => ({
      ...entry,
      user: replaced(entry.user, {
        'client-certificate-data': 'DATA+OMITTED',
        'client-key-data': 'DATA+OMITTED',
        token: 'REDACTED',
        password: 'REDACTED',
      }),
    })),
  };
}

export async function runCurrentContext(context: VerbContext): Promise<number> {
  const current = (await readKubeconfigOf(context)).document['current-context'];
  if (typeof current !== 'string' || current === '') throw new ClientError('current-context is not set');
  context.io.out(`${current}\n`);
  return 0;
}

export async function runGetContexts(context: VerbContext): Promise<number> {
  const { flags, args, io } = context;
  const file = await readKubeconfigOf(context);
  const current = file.document['current-context'];
  const all = entriesIn(file.document, 'contexts').filter(({ name }) => args.length === 0 || args.includes(name));
  if (flags.text('output') === 'name') io.out(all.map(({ name }) => `${name}\n`).join(''));
  else
    io.out(
      layout([
        ...(flags.bool('no-headers') ? [] : [['CURRENT', 'NAME', 'CLUSTER', 'AUTHINFO', 'NAMESPACE']]),
        ...all.map(({ name, context: inner }) => [
          name === current ? '*' : '',
          name,
          inner?.cluster ?? '',
          inner?.user ?? '',
          inner?.namespace ?? '',
        ]),
      ]),
    );
  const [missing] = args.filter((name) => !all.some((each) => each.name === name));
  if (missing !== undefined) throw new ClientError(`context ${missing} not found`);
  return 0;
}

export async function runUseContext(context: VerbContext): Promise<number> {
  const [name] = context.args;
  if (name === undefined) throw new ClientError('you must specify a context name');
  await changeKubeconfig(context, (document) => {
    if (!((document['contexts'] ?? []) as NamedEntry[]).some((each) => each.name === name))
      throw new ClientError(`no context exists with the name: "${name}"`);
    return { ...document, 'current-context': name };
  });
  context.io.out(`Switched to context "${name}".\n`);
  return 0;
}

export async function runSetContext(context: VerbContext): Promise<number> {
  const { flags, args, io } = context;
  let isNew = false;
  let changed = '';
  await changeKubeconfig(context, (document) => {
    const name = flags.bool('current') ? String(document['current-context'] ?? '') : (args[0] ?? '');
    if (name === '')
      throw new ClientError(
        flags.bool('current') ? 'no current context is set' : 'you must specify a non-empty context name or --current',
      );
    changed = name;
    const contexts = (document['contexts'] ?? []) as NamedEntry[];
    isNew = !contexts.some((each) => each.name === name);
    const fields = Object.fromEntries(
      (['cluster', 'user', 'namespace'] as const).flatMap((field) =>
        flags.has(field) ? [[field, flags.text(field)]] : [],
      ),
    );
    const next = isNew
      ? [...contexts, { name, context: fields }]
      : contexts.map((each) => (each.name === name ? { ...each, context: { ...each.context, ...fields } } : each));
    return { ...document, contexts: next };
  });
  io.out(`Context "${changed}" ${isNew ? 'created' : 'modified'}.\n`);
  return 0;
}

const LISTS = ['clusters', 'contexts', 'users'];

/**
 * Changes the first file of the configuration and sorts its entries. Resolves with the path of the file. Throws
 * ClientError if the configuration consists of several files.
 */
export async function changeKubeconfig(
  context: VerbContext,
  edit: (document: Record<string, unknown>, path: string) => Record<string, unknown>,
): Promise<string> {
  const { flags, system } = context;
  const variable = system.environment('KUBECONFIG') ?? '';
  if (flags.text('kubeconfig') === '' && variable.includes(':'))
    throw new ClientError('KUBECONFIG names several files; choose one with --kubeconfig');
  const given = flags.text('kubeconfig');
  const isMissing = given !== '' && !(await system.exists(given));
  const file: KubeconfigFile = isMissing
    ? { path: given, document: { apiVersion: 'v1', kind: 'Config', preferences: {} } }
    : await readKubeconfigOf(context);
  const edited = edit({ ...file.document }, file.path);
  const sorted = Object.entries(edited).flatMap(([key, value]): [string, unknown][] => {
    if (!LISTS.includes(key) || !Array.isArray(value)) return [[key, value]];
    const entries: readonly NamedEntry[] = value;
    return entries.length === 0 ? [] : [[key, entries.toSorted((left, right) => (left.name < right.name ? -1 : 1))]];
  });
  await system.writeFile(file.path, yamlText(Object.fromEntries(sorted)));
  return file.path;
}
