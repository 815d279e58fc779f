/**
 * Creates the objects of template instances with the permissions of their requesters, and deletes them with the
 * instance. Source: openshift/openshift-controller-manager pkg/template/controller.
 */

import { type KubeObject, objectKey, type ResourceType } from '../../../api/meta/object.ts';
import { ApiError, isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { omitUndefined } from '../../../base/json/omit-fields.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import { collectionPathOf, type DiscoveredKind } from '../../../controllers/framework/discovery.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../../controllers/framework/framework.ts';
import {
  INSTANCE_FINALIZER,
  type ObjectRef,
  type TemplateInstance,
  type TemplateInstanceCondition,
} from '../kinds/templateinstances/index.ts';
import type { Template } from '../kinds/templates/index.ts';

/** Label with the UID of the instance for which the object was created, so that a retry recognizes existing objects. */
const OWNER = 'template.openshift.io/template-instance-owner';

export const templateInstanceController: ControllerSpec = {
  name: 'template-instance',
  reads: [resources.templateInstances],
  writes: [resources.templateInstances],
  uses: ['discovery', 'requestAs'],
  prepare,
};

type Send = <R>(method: string, path: string, body?: unknown) => Promise<R>;

interface Placed {
  readonly object: KubeObject;
  readonly path: string;
  readonly name: string;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const instances = handle.informer(resources.templateInstances);
  const client = handle.writer(resources.templateInstances);
  return (scope) => new TemplateInstanceController(handle, scope, { instances, client }).start();
}

interface Access {
  readonly instances: Informer<TemplateInstance>;
  readonly client: ResourceClient<TemplateInstance>;
}

class TemplateInstanceController extends ControllerTerm {
  readonly #access: Access;

  constructor(handle: ControllerHandle, scope: RunScope, access: Access) {
    super(handle, scope, 2);
    this.#access = access;
  }

  override start(): void {
    const wake = (instance: TemplateInstance): void => this.queue.add(objectKey(instance));
    this.scope.onChange(this.#access.instances, { added: wake, updated: wake });
  }

  protected override async sync(key: string): Promise<void> {
    const instance = this.#access.instances.get(key);
    if (instance === undefined) return;
    const { username = '', ...rest } = instance.spec?.requester ?? {};
    const requester = { name: username, ...rest };
    const send: Send = (method, path, body) => this.handle.use('requestAs')(requester, method, path, body);
    if (instance.metadata?.deletionTimestamp !== undefined) {
      if (instance.metadata.finalizers?.includes(INSTANCE_FINALIZER)) await this.#finish(instance, send);
      return;
    }
    if ((instance.status?.conditions ?? []).some((each) => each.status === 'True')) return;
    const status = await this.#statusAfterAttempt(instance, send);
    await this.#access.client.update({ ...instance, status }, { subresource: 'status' });
  }

  /** Creates the objects. The status describes them, or the rejection. Errors that may be temporary are thrown. */
  async #statusAfterAttempt(instance: TemplateInstance, send: Send): Promise<NonNullable<TemplateInstance['status']>> {
    try {
      const refs = await this.#instantiate(instance, send);
      const condition = this.#condition('Ready', 'Created', '');
      return { conditions: [condition], ...(refs.length === 0 ? {} : { objects: refs.map((ref) => ({ ref })) }) };
    } catch (error) {
      // A rejection by the server is final. Other errors are retried.
      if (!(error instanceof ApiError) || error.httpCode >= 500 || error.httpCode === 429) throw error;
      return { conditions: [this.#condition('InstantiateFailure', 'Failed', messageOf(error))] };
    }
  }

  #condition(type: TemplateInstanceCondition['type'], reason: string, message: string): TemplateInstanceCondition {
    const lastTransitionTime = timestamp(this.handle.clock.nowMs());
    return { type, status: 'True', lastTransitionTime, reason, message };
  }

  async #instantiate(instance: TemplateInstance, send: Send): Promise<ObjectRef[]> {
    const { namespace = '', uid = '' } = instance.metadata ?? {};
    const template = await withSecret(instance, send);
    const processed = await send<Template>('POST', templatePath(namespace), {
      ...template,
      apiVersion: 'template.openshift.io/v1',
      kind: 'Template',
      metadata: { name: template.metadata?.name ?? 'template', namespace },
      labels: { ...template.labels, [OWNER]: uid },
    });
    const kinds = await this.#kinds();
    const placed = (processed.objects ?? []).map((object) => place(object as KubeObject, namespace, kinds));
    // A dry run for all objects precedes the first create, so that a rejected object leaves no other objects behind.
    for (const each of placed) await create(each, send, uid, '?dryRun=All');
    const refs: ObjectRef[] = [];
    for (const each of placed) refs.push(refOf(await create(each, send, uid, '')));
    return refs;
  }

  /** Deletes the objects of a deleted instance, and then removes its finalizer. */
  async #finish(instance: TemplateInstance, send: Send): Promise<void> {
    const kinds = await this.#kinds();
    for (const { ref } of instance.status?.objects ?? []) {
      const kind = kinds.get(`${ref?.apiVersion}/${ref?.kind}`);
      if (kind === undefined || ref?.name === undefined) continue;
      const path = `${pathOf(kind, ref.namespace ?? '')}/${encodeURIComponent(ref.name)}`;
      const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
      const preconditions = ref.uid === undefined ? {} : { preconditions: { uid: ref.uid } };
      try {
        await send('DELETE', path, { ...options, ...preconditions });
      } catch (error) {
        // Objects that no longer exist, were replaced, or may not be deleted by the requester are left unchanged.
        if (!(['NotFound', 'Conflict', 'Forbidden'] as const).some((reason) => isApiError(error, reason))) throw error;
      }
    }
    const finalizers = (instance.metadata?.finalizers ?? []).filter((each) => each !== INSTANCE_FINALIZER);
    await this.#access.client.update({ ...instance, metadata: { ...instance.metadata, finalizers } });
  }

  async #kinds(): Promise<Kinds> {
    const { kinds } = await this.handle.use('discovery')();
    return new Map(kinds.map((kind) => [`${apiVersionOf(kind)}/${kind.kind}`, kind]));
  }
}

type Kinds = ReadonlyMap<string, DiscoveredKind>;

const apiVersionOf = ({ group, version }: ResourceType): string => (group === '' ? version : `${group}/${version}`);

const templatePath = (namespace: string): string =>
  `/apis/template.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/processedtemplates`;

function pathOf(kind: ResourceType, namespace: string): string {
  if (kind.namespaced) return collectionPathOf(kind, namespace);
  return `${kind.group === '' ? '/api' : '/apis'}/${apiVersionOf(kind)}/${kind.plural}`;
}

function place(object: KubeObject, namespace: string, kinds: Kinds): Placed {
  const kind = kinds.get(`${object.apiVersion}/${object.kind}`);
  if (kind === undefined)
    throw new ApiError('BadRequest', `no matches for kind "${object.kind}" in version "${object.apiVersion}"`);
  const where = kind.namespaced ? object.metadata?.namespace || namespace : '';
  const metadata = { ...object.metadata, ...(where === '' ? {} : { namespace: where }) };
  return { object: { ...object, metadata }, path: pathOf(kind, where), name: metadata.name ?? '' };
}

async function create({ object, path, name }: Placed, send: Send, owner: string, query: string): Promise<KubeObject> {
  try {
    return await send<KubeObject>('POST', path + query, object);
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists') || name === '') throw error;
    const found = await send<KubeObject>('GET', `${path}/${encodeURIComponent(name)}`);
    if (found.metadata?.labels?.[OWNER] !== owner) throw error;
    return found;
  }
}

function refOf({ apiVersion, kind, metadata }: KubeObject): ObjectRef {
  const { name, namespace, uid } = metadata ?? {};
  return omitUndefined({ apiVersion, kind, namespace, name, uid });
}

/** Template of the instance, with the parameter values from the instance's Secret. */
async function withSecret({ metadata, spec }: TemplateInstance, send: Send): Promise<Template> {
  const template = spec?.template ?? {};
  const name = spec?.secret?.name;
  if (name === undefined || name === '') return template;
  const path = `/api/v1/namespaces/${encodeURIComponent(metadata?.namespace ?? '')}/secrets/${encodeURIComponent(name)}`;
  const { data = {} } = await send<{ data?: Record<string, string> }>('GET', path);
  const parameters = (template.parameters ?? []).map((parameter) => {
    const { name: key = '' } = parameter;
    if (!Object.hasOwn(data, key)) return parameter;
    return { ...parameter, value: Buffer.from(data[key] ?? '', 'base64').toString('utf8') };
  });
  return { ...template, parameters };
}
