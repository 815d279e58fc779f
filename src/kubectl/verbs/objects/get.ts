/** `get`: prints server-side tables, or objects in the format of `-o`. Source: k8s.io/kubectl/pkg/cmd/get. */
import { ApiError, type Status } from '../../../api/meta/status.ts';
import { parseQuantity } from '../../../base/quantity.ts';
import { LineDecoder } from '../../../client/line-decoder.ts';
import { ageOf } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { parseRelaxedPath } from '../../core/json-path.ts';
import type { AnyObject } from '../../core/objects.ts';
import { apiVersionOf, pathOf, printedKind, type ResourceInfo } from '../../core/resources.ts';
import { columnWidths, layout, type Table, type TableRow, type TableStyle, tableCells } from '../../core/table.ts';
import { manifestsOf } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { objectPrinter } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import { entriesOf, type Query, type Session } from '../../session.ts';
import { type NamedResources, namedResources } from '../../targets.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    if (flags.has('raw')) {
      if (args.length > 0) throw new ClientError('arguments may not be passed when --raw is specified');
      const body = await session.stream(flags.text('raw'), {}, 'application/json, */*');
      for await (const chunk of body) {
        io.out(chunk);
        await io.drained();
      }
      return 0;
    }
    if (args.length === 0 && !flags.has('filename') && !flags.has('kustomize')) throw withoutType(context);
    const isWatch = flags.bool('watch') || flags.bool('watch-only');
    if (flags.bool('output-watch-events') && !isWatch)
      throw new ClientError('--output-watch-events option can only be used with --watch or --watch-only');
    const requests = await requestsOf(session, args);
    const printer = await objectPrinter(context);
    if (isWatch) return watch(session, requests, printer);
    return printer === undefined ? printTables(session, requests) : printObjects(session, requests, printer);
  });

function withoutType({ io, program }: VerbContext): ClientError {
  io.err(
    `You must specify the type of resource to get. Use "${program} api-resources" for a complete list of supported resources.\n\n`,
  );
  return new ClientError(
    `Required resource not specified.\nUse "${program} explain <resource>" for a detailed description of that resource (e.g. ${program} explain pods).`,
    { usage: true },
  );
}

interface Request {
  readonly resource: ResourceInfo;
  readonly namespace: string | undefined;
  /** Name of the object; undefined for a request of the whole collection. */
  readonly name: string | undefined;
}

async function requestsOf(session: Session, args: readonly string[]): Promise<Request[]> {
  const { flags } = session.context;
  if (flags.has('filename') || flags.has('kustomize'))
    return Promise.all(
      (await manifestsOf(session.context)).map(async ({ object }) => ({
        ...(await session.place(object)),
        name: object.metadata?.name ?? '',
      })),
    );
  const named = await namedResources(session, args);
  const allNamespaces = flags.bool('all-namespaces');
  const isNamed = named.some(({ names }) => names.length > 0);
  if (isNamed && flags.text('selector') !== '')
    throw new ClientError('name cannot be provided when a selector is specified');
  if (isNamed && allNamespaces) throw new ClientError('a resource cannot be retrieved by name across all namespaces');
  return named.flatMap(({ resources, names }: NamedResources) =>
    resources.flatMap((resource): Request[] => {
      const namespace = session.namespaceFor(resource, allNamespaces);
      return names.length === 0
        ? [{ resource, namespace, name: undefined }]
        : names.map((name) => ({ resource, namespace, name }));
    }),
  );
}

const selection = ({ context: { flags } }: Session): Query => ({
  labelSelector: flags.text('selector'),
  fieldSelector: flags.text('field-selector'),
});

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.reason === 'NotFound';

/**
 * Calls `read` for every request. If there are several, errors are printed and the loop continues. Returns true if one
 * failed.
 */
async function eachRequest(
  session: Session,
  requests: readonly Request[],
  read: (request: Request) => Promise<void>,
): Promise<boolean> {
  const { flags, io } = session.context;
  let failed = false;
  for (const request of requests) {
    try {
      await read(request);
    } catch (error) {
      if (flags.bool('ignore-not-found') && isMissing(error)) continue;
      if (requests.length === 1) throw error;
      failed = true;
      io.err(`${errorLine(error)}\n`);
    }
  }
  return failed;
}

async function printObjects(
  session: Session,
  requests: readonly Request[],
  print: (object: AnyObject) => string,
): Promise<number> {
  const { flags, io } = session.context;
  const found: AnyObject[] = [];
  let isList = requests.length > 1;
  const failed = await eachRequest(session, requests, async (request) => {
    if (request.name !== undefined) found.push(await session.object(request.resource, request.namespace, request.name));
    else {
      isList = true;
      found.push(...(await session.list(request.resource, request.namespace, selection(session))));
    }
  });
  const [only] = found;
  if (found.length === 0 && (flags.bool('ignore-not-found') || failed)) return failed ? 1 : 0;
  if (flags.text('sort-by') !== '') sortBy(found, flags.text('sort-by'), (object) => object);
  const document = isList ? { apiVersion: 'v1', items: found, kind: 'List', metadata: { resourceVersion: '' } } : only;
  if (document !== undefined) io.out(print(document));
  return failed ? 1 : 0;
}

async function printTables(session: Session, requests: readonly Request[]): Promise<number> {
  const { flags, io } = session.context;
  const groups = new Map<ResourceInfo, Table>();
  const failed = await eachRequest(session, requests, async (request) => {
    const table = await readTable(session, request);
    const before = groups.get(request.resource);
    groups.set(
      request.resource,
      before === undefined ? table : { ...before, rows: [...(before.rows ?? []), ...(table.rows ?? [])] },
    );
  });
  const kinds = new Set(requests.map(({ resource }) => resource)).size;
  const withContent = [...groups].filter(([, { rows = [] }]) => rows.length > 0);
  if (withContent.length === 0) {
    if (!failed && !flags.bool('ignore-not-found') && flags.text('output') !== 'name')
      io.err(`${noneFound(session, requests)}\n`);
    return failed ? 1 : 0;
  }
  const texts = withContent.map(([resource, table]) => {
    const cells = tableCells(
      table,
      styleOf(
        session,
        resource,
        kinds > 1 || (requests.length > new Set(requests.map((each) => each.resource)).size && kinds > 1),
      ),
    );
    return layout([...(flags.bool('no-headers') ? [] : [cells.header]), ...cells.rows]);
  });
  io.out(texts.join(flags.bool('no-headers') ? '' : '\n'));
  return failed ? 1 : 0;
}

function noneFound(session: Session, requests: readonly Request[]): string {
  const isNamespaced = requests.some(({ namespace }) => namespace !== undefined);
  return isNamespaced ? `No resources found in ${session.namespace} namespace.` : 'No resources found';
}

function styleOf(session: Session, resource: ResourceInfo, isMixed: boolean): TableStyle {
  const { flags } = session.context;
  return {
    wide: flags.text('output') === 'wide',
    withNamespace: flags.bool('all-namespaces') && resource.namespaced,
    namePrefix: isMixed || flags.bool('show-kind') ? `${printedKind(resource)}/` : '',
    showLabels: flags.bool('show-labels'),
    labelColumns: flags.list('label-columns'),
  };
}

async function readTable(session: Session, { resource, namespace, name }: Request): Promise<Table> {
  const { flags } = session.context;
  const sort = flags.text('sort-by');
  const includeObject = sort === '' ? undefined : 'Object';
  const accept = flags.text('server-print') === 'false' ? undefined : TABLE;
  const now = session.context.system.now();
  if (name !== undefined) {
    const path = pathOf(resource, namespace, name, flags.text('subresource') || undefined);
    const found = await session.get<Table & AnyObject>(path, { includeObject }, accept);
    return found.kind === 'Table' ? found : tableOfObjects([found], now);
  }
  const rows: TableRow[] = [];
  const limit = Number(flags.text('chunk-size')) || undefined;
  for (let next = '', before = ''; ; before = next) {
    const query = { ...selection(session), includeObject, limit, continue: next };
    const page = await session.get<Table & { items?: AnyObject[] }>(pathOf(resource, namespace), query, accept);
    const table = page.kind === 'Table' ? page : tableOfObjects(entriesOf(page.items), now);
    rows.push(...entriesOf(table.rows));
    next = page.metadata?.continue ?? '';
    if (next !== '' && next === before)
      throw new ClientError('the server returned the same part of the list twice; try again');
    if (next === '') {
      if (sort !== '') sortBy(rows, sort, ({ object }) => object as AnyObject);
      return { ...table, columnDefinitions: entriesOf(table.columnDefinitions), rows };
    }
  }
}

/** Table for `--server-print=false`, or for a server that does not support tables. */
function tableOfObjects(objects: readonly AnyObject[], now: number): Table {
  return {
    columnDefinitions: [{ name: 'Name' }, { name: 'Age' }],
    rows: objects.map((object) => ({
      cells: [object.metadata?.name, ageOf(object.metadata?.creationTimestamp, now)],
      object,
    })),
  };
}

/** Sorts in place by a field. Numbers and quantities are compared by value, other values as text. */
export function sortBy<T>(values: T[], field: string, objectOf: (value: T) => unknown): void {
  const path = parseRelaxedPath(field);
  const keys = new Map(values.map((value) => [value, path.find(objectOf(value))[0]]));
  if (values.length > 0 && [...keys.values()].every((key) => key === undefined))
    throw new ClientError(
      `couldn't find any field with path "{${field.replace(/^\{|\}$/g, '')}}" in the list of objects`,
    );
  values.sort((left, right) => compare(keys.get(left), keys.get(right)));
}

function compare(left: unknown, right: unknown): number {
  if (left === undefined || right === undefined) return left === right ? 0 : left === undefined ? -1 : 1;
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  const [first, second] = [String(left), String(right)];
  const amounts = [first, second].map(amountOf);
  const [less, more] = amounts.includes(undefined) ? [first, second] : amounts;
  return (less ?? '') < (more ?? '') ? -1 : (less ?? '') > (more ?? '') ? 1 : 0;
}

/** Value of a quantity such as `10Gi`; undefined for another text. */
function amountOf(text: string): bigint | undefined {
  try {
    return parseQuantity(text).nanos;
  } catch {
    return undefined;
  }
}

/** Width of the longest type of an event. */
const EVENT_WIDTH = 'MODIFIED'.length;

interface WatchLine {
  readonly type: string;
  readonly object: Table & AnyObject & Partial<Status>;
}

async function watch(
  session: Session,
  requests: readonly Request[],
  print: ((object: AnyObject) => string) | undefined,
): Promise<number> {
  const { flags, io, signal } = session.context;
  const [request, ...others] = requests;
  if (request === undefined || others.length > 0) throw new ClientError('you may only specify a single resource type');
  const { resource, namespace, name } = request;
  const query: Query =
    name === undefined ? selection(session) : { ...selection(session), fieldSelector: `metadata.name=${name}` };
  const accept = print === undefined ? TABLE : undefined;
  const first = await session.get<Table & AnyObject>(pathOf(resource, namespace), { ...query }, accept);
  if (name !== undefined && (first.rows ?? first.items ?? []).length === 0)
    await session.object(resource, namespace, name);
  const style = styleOf(session, resource, false);
  let widths: readonly number[] = [];
  let columns = first.columnDefinitions ?? [];
  const show = (table: Table, withHeader: boolean, prefix: string): void => {
    columns = table.columnDefinitions ?? columns;
    const cells = tableCells({ columnDefinitions: columns, rows: table.rows ?? [] }, style);
    const withEvent = (row: readonly string[], text: string): readonly string[] =>
      flags.bool('output-watch-events') ? [text.padEnd(EVENT_WIDTH), ...row] : row;
    const lines = [
      ...(withHeader ? [withEvent(cells.header, 'EVENT')] : []),
      ...cells.rows.map((row) => withEvent(row, prefix)),
    ];
    const wanted = columnWidths(lines);
    widths = wanted.map((value, index) => Math.max(value, widths[index] ?? 0));
    io.out(layout(lines, widths));
  };
  const printEvent = (type: string, object: AnyObject): void =>
    io.out(print?.(flags.bool('output-watch-events') ? { type, object } : object) ?? '');
  if (!flags.bool('watch-only')) {
    if (print === undefined) {
      if ((first.rows ?? []).length > 0) show(first, !flags.bool('no-headers'), 'ADDED');
    } else
      for (const item of first.items ?? [])
        printEvent('ADDED', { ...item, apiVersion: apiVersionOf(resource), kind: resource.kind });
  }
  let headerShown = (first.rows ?? []).length > 0 && !flags.bool('watch-only');
  const body = await session.stream(
    pathOf(resource, namespace),
    { ...query, watch: true, resourceVersion: first.metadata?.resourceVersion },
    accept,
  );
  const decoder = new LineDecoder();
  try {
    for await (const chunk of body)
      for (const line of decoder.push(chunk)) {
        const event: WatchLine = JSON.parse(line);
        if (event.type === 'ERROR') throw ApiError.fromStatus(event.object, 410);
        if (event.type === 'BOOKMARK') continue;
        if (print === undefined) {
          show(event.object, !headerShown && !flags.bool('no-headers'), event.type);
          headerShown = true;
        } else printEvent(event.type, event.object);
      }
  } catch (error) {
    // --request-timeout ends a watch without an error.
    const isTimeout = flags.has('request-timeout') && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
    if (!signal.aborted && !isTimeout) throw error;
  }
  return 0;
}
