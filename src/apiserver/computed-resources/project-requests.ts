/**
 * `projectrequests`: creates a project for a user from the cluster's template. Source: openshift/openshift-apiserver
 * pkg/project/apiserver/registry/projectrequest/delegated.
 */

import type { JsonObject, KubeObject } from '../../api/meta/object.ts';
import { ApiError, errors, isApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { messageOf } from '../../base/errors.ts';
import type { ProjectRequest } from '../../openshift/projects/kinds/projectrequests/index.ts';
import { nameRefusal, projectObjects, type TemplateBody } from '../../openshift/templates/core/index.ts';
import { ownRequest } from '../bootstrap/index.ts';
import { decodeObject } from '../pipeline/decode-object.ts';
import { fromStored, type ServedKind } from '../pipeline/kinds.ts';
import type { WriteRequest } from '../pipeline/write-request.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { createObject } from '../rest/writes/create.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { requireProjectsLeft } from './project-limits.ts';
import type { ReviewRequest } from './review-request.ts';
import { secretUniform } from './uniform-names.ts';

type ProjectRequestsContext = WriteContext & Pick<ServerContext, 'authorization' | 'log'>;

const GROUP = 'project.openshift.io';
const TEMPLATE_NAMESPACE = 'openshift-config';
const DEFAULT_MESSAGE = 'You may not request a new project via this API.';
/** Time limit until the project is visible to the requester, as in OpenShift. */
const VISIBLE_MS = 6_000;
const POLL_MS = 20;

interface ProjectConfig extends KubeObject {
  spec?: { projectRequestMessage?: string; projectRequestTemplate?: { name?: string } };
}

function configured(context: ProjectRequestsContext): ProjectConfig['spec'] & object {
  const config = context.kinds.at('config.openshift.io', 'v1', 'projects')?.cache?.get('', 'cluster');
  return config?.parse<ProjectConfig>().spec ?? {};
}

/** GET of the collection: whether the user may request projects. Throws 'Forbidden' with the cluster's message. */
export async function mayRequestProjects(context: ProjectRequestsContext, user: UserInfo): Promise<void> {
  await context.cache.freshen();
  const action = {
    verb: 'create',
    group: GROUP,
    resource: 'projectrequests',
    subresource: '',
    namespace: '',
    name: '',
  };
  const { allowed } = await context.authorization.authorize(user, action);
  if (allowed) return;
  const message = configured(context).projectRequestMessage || DEFAULT_MESSAGE;
  throw new ApiError('Forbidden', message, { group: GROUP, kind: 'projectrequest' });
}

const broken = (name: string, what: string): ApiError =>
  new ApiError(
    'InternalError',
    `Internal error occurred: the project template (${TEMPLATE_NAMESPACE}/${name}) is not correctly configured: ${what}`,
  );

export async function requestProject(
  context: ProjectRequestsContext,
  object: ProjectRequest,
  { user, dryRun }: ReviewRequest,
): Promise<KubeObject> {
  const name = object.metadata?.name ?? '';
  const subject = { group: GROUP, plural: 'project' };
  const refusal = nameRefusal(name);
  if (refusal !== undefined) {
    const message = `project.${GROUP} ${JSON.stringify(name)} is forbidden: ${refusal}`;
    throw new ApiError('Forbidden', message, { name, group: GROUP, kind: 'project' });
  }
  await context.cache.freshen();
  const kind = servedKind(context, GROUP, 'projects');
  if (kind.cache?.get('', name) !== undefined) throw errors.alreadyExists(subject, name);
  requireProjectsLeft(context, user, name);
  const planned = planOf(context, object, user);
  const content = planned.content.map((each) => contentOf(context, name, each));
  const project = decode(kind, planned.project);
  if (project.metadata?.name !== name) throw broken(planned.from, `the project must be called ${name}`);
  try {
    const created = await createObject(context, requestFor(context, kind, '', dryRun), project);
    // A dry run creates no namespace, so the other objects cannot be tried.
    if (dryRun) return fromStored(kind, created.parse());
  } catch (error) {
    throw isApiError(error, 'AlreadyExists') ? errors.alreadyExists(subject, name) : error;
  }
  try {
    for (const each of content) await createObject(context, requestFor(context, each.kind, name, false), each.object);
  } catch (error) {
    await undo(context, name);
    throw new ApiError('InternalError', `Internal error occurred: ${messageOf(error)}`);
  }
  await context.cache.freshen();
  if (content.some((each) => each.kind.definition.kind === 'RoleBinding')) await untilVisible(context, user, name);
  const made = kind.cache?.get('', name);
  if (made === undefined) throw errors.notFound(subject, name);
  return fromStored(kind, made.parse());
}

function planOf(context: ProjectRequestsContext, object: ProjectRequest, user: UserInfo) {
  const from = configured(context).projectRequestTemplate?.name ?? '';
  const templates = context.kinds.at('template.openshift.io', 'v1', 'templates')?.cache;
  const stored = from === '' ? undefined : templates?.get(TEMPLATE_NAMESPACE, from);
  if (from !== '' && stored === undefined)
    throw errors.notFound({ group: 'template.openshift.io', plural: 'templates' }, from);
  const parameters = {
    PROJECT_NAME: object.metadata?.name ?? '',
    PROJECT_DISPLAYNAME: object.displayName ?? '',
    PROJECT_DESCRIPTION: object.description ?? '',
    PROJECT_ADMIN_USER: user.name,
    PROJECT_REQUESTING_USER: user.name,
  };
  const planned = projectObjects(stored?.parse<KubeObject & TemplateBody>(), parameters, secretUniform(context.random));
  if (typeof planned === 'string') throw broken(from, planned);
  return { ...planned, from };
}

/**
 * Validates a template object before the first object is created. Cluster-scoped objects are rejected, because they
 * would remain when the project is deleted.
 */
function contentOf(context: ProjectRequestsContext, namespace: string, document: JsonObject) {
  const { apiVersion, kind: name } = document;
  const kind = context.kinds.all.find((each) => each.apiVersion === apiVersion && each.kind === name);
  const shown = `${String(apiVersion)}, Kind=${String(name)}`;
  if (kind === undefined || kind.definition.isComputed === true)
    throw new ApiError('InternalError', `Internal error occurred: mapping ${shown} failed: no matches for kind`);
  if (!kind.definition.namespaced) {
    const why = `${shown} specified in project template is not namespace scoped`;
    throw new ApiError('InternalError', `Internal error occurred: ${why}`);
  }
  const object = decode(kind, document);
  object.metadata = { ...object.metadata, namespace };
  return { kind, object };
}

const decode = (kind: ServedKind, document: JsonObject): KubeObject =>
  decodeObject(kind, structuredClone(document), { validation: 'Ignore' });

function servedKind(context: ProjectRequestsContext, group: string, plural: string): ServedKind {
  const kind = context.kinds.at(group, 'v1', plural);
  if (kind === undefined) throw new ApiError('NotFound', `${plural}.${group}: not served by this server`, {});
  return kind;
}

/** The objects are created with the server's identity, because the requester has no permissions in the project yet. */
function requestFor(
  context: ProjectRequestsContext,
  kind: ServedKind,
  namespace: string,
  dryRun: boolean,
): WriteRequest {
  const own = ownRequest(context, 'namespaces', '', namespace, '');
  const options = { ...own.options, dryRun, fieldManager: 'project-request' };
  return { ...own, kind, options, own: false };
}

async function undo(context: ProjectRequestsContext, name: string): Promise<void> {
  try {
    await deleteObject(context, ownRequest(context, 'namespaces', '', '', name), {
      gracePeriodSeconds: 0,
      propagation: 'Background',
      uid: undefined,
      resourceVersion: undefined,
      dryRun: false,
    });
  } catch (error) {
    context.log.warn('cannot remove a project whose request failed', { project: name, error: messageOf(error) });
  }
}

/** Waits until the requester can see the project. Never fails, because the project exists in any case. */
async function untilVisible(context: ProjectRequestsContext, user: UserInfo, name: string): Promise<void> {
  const action = { verb: 'get', group: GROUP, resource: 'projects', subresource: '', namespace: name, name };
  const endMs = context.clock.monotonicMs() + VISIBLE_MS;
  while (!context.authorization.allows(user, action) && context.clock.monotonicMs() < endMs) {
    await new Promise<void>((resolve) => {
      context.clock.setTimer(POLL_MS, resolve);
    });
  }
}
