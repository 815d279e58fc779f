/** `apply`: server-side apply, with the annotation that client-side apply of other tools compares with. */
import { isApiError } from '../../api/meta/status.ts';
import { goJson } from '../core/encode.ts';
import { ClientError } from '../core/errors.ts';
import type { AnyObject, ManagedFields } from '../core/objects.ts';
import { pathOf } from '../core/resources.ts';
import { type Manifest, requiredManifests } from '../manifests.ts';
import type { VerbContext } from '../port.ts';
import { dryRunOf, objectPrinter, printOutcome, writeQuery } from '../printing.ts';
import { errorLine, withSession } from '../run.ts';
import type { Session } from '../session.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const CLIENT_SIDE_MANAGERS: ReadonlySet<string> = new Set(['kubectl-client-side-apply', 'before-first-apply']);

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    if (flags.has('prune'))
      throw new ClientError('--prune is not supported by the built-in client; delete objects by label instead');
    if (flags.bool('force-conflicts') && !flags.bool('server-side'))
      throw new ClientError('--force-conflicts only works with --server-side');
    if (flags.bool('server-side') && dryRunOf(flags) === 'client')
      throw new ClientError(
        "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
      );
    const manifests = await requiredManifests(context);
    const applied: AnyObject[] = [];
    const errors: string[] = [];
    const printer = await objectPrinter(context);
    for (const manifest of manifests) {
      try {
        const { object, outcome } = await applyOne(session, manifest);
        applied.push(object);
        if (printer === undefined) await printOutcome(context, object, outcome);
      } catch (error) {
        errors.push(errorLine(error, isApiError(error, 'Invalid') ? '' : `error when applying "${manifest.source}"`));
      }
    }
    if (printer !== undefined && applied.length > 0)
      io.out(
        printer(
          applied.length === 1
            ? (applied[0] as AnyObject)
            : { apiVersion: 'v1', items: applied, kind: 'List', metadata: {} },
        ),
      );
    for (const line of errors) io.err(`${line}\n`);
    return errors.length === 0 ? 0 : 1;
  });

async function applyOne(
  session: Session,
  { object }: Manifest,
): Promise<{ readonly object: AnyObject; readonly outcome: string }> {
  const { flags } = session.context;
  const { resource, namespace } = await session.place(object);
  const { name } = object.metadata ?? {};
  if (name === undefined || name === '')
    throw new ClientError(
      object.metadata?.generateName === undefined
        ? 'resource name may not be empty'
        : `from ${object.metadata.generateName}: cannot use generate name with apply`,
    );
  const path = pathOf(resource, namespace, name);
  const before = await session.get(path).catch((error: unknown) => {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  });
  const serverSide = flags.bool('server-side');
  if (dryRunOf(flags) === 'client')
    return {
      object: before === undefined ? object : { ...before, ...object },
      outcome: before === undefined ? 'created' : 'configured',
    };
  const query = {
    ...writeQuery(flags, 'kubectl'),
    force: flags.bool('force-conflicts') || !serverSide ? true : undefined,
    fieldValidation: validationOf(flags.text('validate')),
  };
  if (before !== undefined && dryRunOf(flags) === 'none')
    await takeOver(session, path, before, flags.text('field-manager') || 'kubectl');
  const placed: AnyObject =
    namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
  const body = serverSide ? placed : withLastApplied(placed);
  const after = await session.send('PATCH', path, { query, body, contentType: 'application/apply-patch+yaml' });
  if (serverSide) return { object: after, outcome: 'serverside-applied' };
  const unchanged = before?.metadata?.resourceVersion === after.metadata?.resourceVersion;
  return { object: after, outcome: before === undefined ? 'created' : unchanged ? 'unchanged' : 'configured' };
}

function withLastApplied(object: AnyObject): AnyObject {
  const { [LAST_APPLIED]: _, ...annotations } = object.metadata?.annotations ?? {};
  const clean: AnyObject = { ...object, metadata: { ...object.metadata, annotations } };
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: `${goJson(clean)}\n` } },
  };
}

/**
 * Gives fields that client-side apply owns to this manager, so that fields which are no longer in the manifest are
 * removed. Source: k8s.io/client-go/util/csaupgrade.
 */
async function takeOver(session: Session, path: string, live: AnyObject, manager: string): Promise<void> {
  const entries = live.metadata?.managedFields ?? [];
  const theirs = entries.filter(
    ({ manager: name = '', operation, subresource }) =>
      CLIENT_SIDE_MANAGERS.has(name) && operation === 'Update' && (subresource ?? '') === '',
  );
  if (theirs.length === 0) return;
  const isOurs = (entry: ManagedFields): boolean =>
    entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === '';
  const [first] = theirs;
  const merged = [...entries.filter(isOurs), ...theirs].map(({ fieldsV1 = {} }) => fieldsV1).reduce(union);
  const managedFields = [
    ...entries.filter((entry) => !theirs.includes(entry) && !isOurs(entry)),
    { ...first, manager, operation: 'Apply', fieldsV1: merged },
  ];
  await session.send('PATCH', path, {
    contentType: 'application/json-patch+json',
    body: [
      { op: 'replace', path: '/metadata/managedFields', value: managedFields },
      { op: 'replace', path: '/metadata/resourceVersion', value: live.metadata?.resourceVersion },
    ],
  });
}

function union(left: Record<string, unknown>, right: Record<string, unknown>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...left };
  for (const [key, value] of Object.entries(right))
    merged[key] =
      key in merged ? union(merged[key] as Record<string, unknown>, value as Record<string, unknown>) : value;
  return merged;
}

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
