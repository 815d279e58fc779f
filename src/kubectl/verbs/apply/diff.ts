/** `diff`: compares the live objects with the result of an `apply`. Source: k8s.io/kubectl/pkg/cmd/diff. */
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { goJson } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, LAST_APPLIED, withoutManagedFields } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import { type Manifest, requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { applyHere, readIfPresent } from './client-side-apply.ts';
import { prunable } from './prune.ts';

/** Exit code of a failure. Exit code 1 means that an object differs. */
const FAILURE = 2;

export async function run(context: VerbContext): Promise<number> {
  const { flags, io, system } = context;
  if (!flags.has('filename') && !flags.has('kustomize')) {
    io.err('error: must specify one of -f and -k\n');
    return FAILURE;
  }
  const before = new Map<string, string>();
  const after = new Map<string, string>();
  try {
    await withSession({ ...context, flags: flags.with({ 'dry-run': 'server' }) }, async (session) => {
      const live: AnyObject[] = [];
      for (const manifest of await requiredManifests(context, 'diff')) {
        const pair = await pairOf(session, manifest);
        if (pair.live !== undefined) live.push(pair.live);
        put(context, before, after, pair.live, pair.merged);
      }
      if (flags.bool('prune'))
        for (const object of await prunable(session, live)) put(context, before, after, object, undefined);
      return 0;
    });
  } catch (error) {
    io.err(`${errorLine(error)}\n`);
    return FAILURE;
  }
  const [program = 'diff', ...args] = (system.environment('KUBECTL_EXTERNAL_DIFF') ?? '')
    .split(' ')
    .filter((word) => word !== '');
  const options = args.filter((word) => /^[\w./=:@-]+$/.test(word));
  try {
    const code = await system.compareFiles(
      program,
      system.environment('KUBECTL_EXTERNAL_DIFF') ? options : ['-u', '-N'],
      {
        LIVE: before,
        MERGED: after,
      },
    );
    if (code > 1) io.err(`error: ${program} failed with exit code ${code}\n`);
    return code;
  } catch (error) {
    io.err(`error: failed to run "${program}": ${messageOf(error)}\n`);
    return FAILURE;
  }
}

async function pairOf(
  session: Session,
  { object, source }: Manifest,
): Promise<{ readonly live: AnyObject | undefined; readonly merged: AnyObject }> {
  const { resource, namespace } = await session.place(object);
  const { name = '' } = object.metadata ?? {};
  if (name === '') throw new ClientError('resource name may not be empty');
  const placed = namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
  const path = pathOf(resource, namespace, name);
  const { flags } = session.context;
  const live = await readIfPresent(session, path);
  if (!flags.bool('server-side')) {
    try {
      const { object: merged } = await applyHere(session, { object: placed, source, resource, namespace, name });
      return { live, merged: withAnnotationOf(live, merged) };
    } catch (error) {
      throw error instanceof Error && isApiError(error.cause) ? error.cause : error;
    }
  }
  const merged = await session.send('PATCH', path, {
    query: {
      fieldManager: flags.has('field-manager') ? flags.text('field-manager') : 'kubectl',
      dryRun: 'All',
      force: flags.bool('force-conflicts') || undefined,
    },
    // The server stores the body in an annotation, in which kubectl sorts the keys.
    body: sortedKeys(placed),
    contentType: 'application/apply-patch+yaml',
  });
  return { live, merged };
}

const sortedKeys = (object: AnyObject): AnyObject => {
  const sorted: AnyObject = JSON.parse(goJson(object));
  return sorted;
};

/** Restores the annotation of the last `apply`, because its change is not shown as a difference. */
function withAnnotationOf(live: AnyObject | undefined, merged: AnyObject): AnyObject {
  const { [LAST_APPLIED]: _, ...others } = merged.metadata?.annotations ?? {};
  const former = live?.metadata?.annotations?.[LAST_APPLIED];
  const annotations = former === undefined ? others : { ...others, [LAST_APPLIED]: former };
  const { annotations: _annotations, ...metadata } = merged.metadata ?? {};
  const isEmpty = Object.keys(annotations).length === 0;
  return { ...merged, metadata: isEmpty ? metadata : { ...metadata, annotations } };
}

function put(
  { flags }: VerbContext,
  before: Map<string, string>,
  after: Map<string, string>,
  live: AnyObject | undefined,
  merged: AnyObject | undefined,
): void {
  const known = live ?? merged;
  if (known === undefined) return;
  const { apiVersion = '', kind = '', metadata } = known;
  const parts = [...apiVersion.split('/'), kind, metadata?.namespace ?? '', metadata?.name ?? ''];
  const name = parts.map((part) => part.replaceAll('/', '_')).join('.');
  const clean = (object: AnyObject): AnyObject =>
    flags.bool('show-managed-fields') ? object : withoutManagedFields(object);
  const isHidden = kind === 'Secret' && apiVersion === 'v1' && !flags.bool('show-secrets');
  const [left, right] = isHidden ? masked(live, merged) : [live, merged];
  if (left !== undefined) before.set(name, yamlText(clean(left)));
  if (right !== undefined) after.set(name, yamlText(clean(right)));
}

/** Hides values of Secrets. A value that changes is marked on both sides. */
function masked(
  live: AnyObject | undefined,
  merged: AnyObject | undefined,
): [AnyObject | undefined, AnyObject | undefined] {
  const dataOf = (object: AnyObject | undefined): Record<string, unknown> =>
    (object?.['data'] ?? {}) as Record<string, unknown>;
  const hide = (object: AnyObject | undefined, other: AnyObject | undefined, suffix: string): AnyObject | undefined => {
    if (object === undefined) return undefined;
    const [own, others] = [dataOf(object), dataOf(other)];
    const data = Object.fromEntries(
      Object.keys(own).map((key) => [
        key,
        Object.hasOwn(others, key) && others[key] !== own[key] ? `*** (${suffix})` : '***',
      ]),
    );
    return object['data'] === undefined ? object : { ...object, data };
  };
  return [hide(live, merged, 'before'), hide(merged, live, 'after')];
}
