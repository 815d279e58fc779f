/** `apply`, merged by the client or, with `--server-side`, by the server. Source: k8s.io/kubectl/pkg/cmd/apply. */
import { isApiError } from '../../../api/meta/status.ts';
import { goJson } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, LAST_APPLIED, type ManagedFields } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { type Manifest, requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, objectPrinter, printOutcome, validationOf, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { ApplySet } from './apply-set.ts';
import { applyHere, CreationError } from './client-side-apply.ts';
import { checkPrune, pruneObjects } from './prune.ts';

const CLIENT_SIDE_MANAGERS: ReadonlySet<string> = new Set(['kubectl-client-side-apply', 'before-first-apply']);

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    if (flags.bool('force-conflicts') && !flags.bool('server-side'))
      throw new ClientError('--force-conflicts only works with --server-side');
    if (flags.bool('server-side') && dryRunOf(flags) === 'client')
      throw new ClientError(
        "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
      );
    if (flags.bool('all') && flags.text('selector') !== '')
      throw new ClientError('cannot set --all and --selector at the same time');
    const applySet = await ApplySet.of(session);
    const isPruning = flags.bool('prune');
    if (isPruning && applySet === undefined) await checkPrune(session);
    const given = await requiredManifests(context, 'apply');
    const manifests = applySet?.labelled(given) ?? given;
    await applySet?.begin(manifests);
    const applied: AnyObject[] = [];
    const errors: string[] = [];
    const printer = await objectPrinter(context);
    for (const manifest of manifests) {
      try {
        const { object, outcome } = await applyOne(session, manifest);
        applied.push(object);
        if (printer === undefined) await printOutcome(context, object, outcome);
      } catch (error) {
        const cause = error instanceof CreationError ? error.cause : error;
        errors.push(
          errorLine(
            cause,
            isApiError(cause, 'Invalid') || error instanceof ErrorWithoutSource ? '' : whenOf(error, manifest.source),
          ),
        );
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
    // After a failure nothing is pruned: an object may seem to be in no file only because its file could not be
    // applied.
    if (isPruning && errors.length === 0) await (applySet?.finish(applied) ?? pruneObjects(session, applied));
    // As in kubectl, the prefix `error: ` is printed only if there is a single error.
    for (const line of errors) io.err(`${errors.length === 1 ? line : line.replace(/^error: /, '')}\n`);
    return errors.length === 0 ? 0 : 1;
  });

interface Applied {
  readonly object: AnyObject;
  readonly outcome: string;
}

const whenOf = (error: unknown, source: string): string =>
  `error when ${error instanceof CreationError ? 'creating' : 'applying'} "${source}"`;

async function applyOne(session: Session, { object, source }: Manifest): Promise<Applied> {
  const { flags } = session.context;
  const { name } = object.metadata ?? {};
  const { resource, namespace } = await placeOf(session, object, source);
  if (name === undefined || name === '')
    throw new ClientError(
      object.metadata?.generateName === undefined
        ? 'resource name may not be empty'
        : `from ${object.metadata.generateName}: cannot use generate name with apply`,
    );
  const placed: AnyObject =
    namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
  if (!flags.bool('server-side')) return applyHere(session, { object: placed, source, resource, namespace, name });
  const path = pathOf(resource, namespace, name);
  const query = {
    ...writeQuery(flags, 'kubectl'),
    force: flags.bool('force-conflicts') || undefined,
    fieldValidation: validationOf(flags.text('validate')),
  };
  const contentType = 'application/apply-patch+yaml';
  // The server may copy the manifest into the annotation as it was sent, and kubectl sends sorted fields.
  const body = JSON.parse(goJson(placed));
  const send = (): Promise<AnyObject> => session.send('PATCH', path, { query, body, contentType });
  let after = await send().catch((error: unknown) => {
    throw isApiError(error, 'Conflict') ? new ErrorWithoutSource(`${error.message}\n${RESOLUTION}`) : error;
  });
  const outcome = 'serverside-applied';
  if (dryRunOf(flags) !== 'none') return { object: after, outcome };
  if (after.metadata?.annotations?.[LAST_APPLIED] !== undefined && !flags.has('field-manager')) {
    // Later applies without --server-side compare the manifest with this annotation.
    const annotations = { [LAST_APPLIED]: `${goJson(placed)}\n` };
    const { apiVersion, kind } = placed;
    after = await session.send('PATCH', path, {
      query: { fieldManager: 'kubectl-last-applied', force: true },
      body: { apiVersion, kind, metadata: { name, namespace, annotations } },
      contentType,
    });
  }
  // Only a manifest that was applied without a conflict takes fields over from client-side apply.
  const isTaken = await takeOver(session, path, after, flags.text('field-manager') || 'kubectl');
  return { object: isTaken ? await send() : after, outcome };
}

/** Help for a conflict of server-side apply. Source: k8s.io/kubectl/pkg/cmd/apply. */
const RESOLUTION = `Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the \`--force-conflicts\` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts`;

function placeOf(session: Session, object: AnyObject, source: string): ReturnType<Session['place']> {
  return session.place(object).catch((error: unknown) => {
    if (!(error instanceof ClientError)) throw error;
    if (!error.message.startsWith('no matches for kind')) throw new ErrorWithoutSource(error.message);
    const { name = '', namespace = '' } = object.metadata ?? {};
    throw new ErrorWithoutSource(
      `resource mapping not found for name: "${name}" namespace: "${namespace}" from "${source}": ${error.message}`,
    );
  });
}

/** Error whose message does not mention the file. */
class ErrorWithoutSource extends ClientError {}

/**
 * Transfers the ownership of fields from client-side apply to this manager, so that the server removes fields that are
 * no longer in the manifest. Returns false if client-side apply owns no fields.
 * Source: k8s.io/client-go/util/csaupgrade.
 */
async function takeOver(session: Session, path: string, live: AnyObject, manager: string): Promise<boolean> {
  const entries = live.metadata?.managedFields ?? [];
  const theirs = entries.filter(
    ({ manager: name = '', operation, subresource }) =>
      CLIENT_SIDE_MANAGERS.has(name) && operation === 'Update' && (subresource ?? '') === '',
  );
  if (theirs.length === 0) return false;
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
  return true;
}

function union(left: Record<string, unknown>, right: Record<string, unknown>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...left };
  for (const [key, value] of Object.entries(right))
    merged[key] =
      key in merged ? union(merged[key] as Record<string, unknown>, value as Record<string, unknown>) : value;
  return merged;
}
