/**
 * Changes namespaces, labels, annotations, images and replicas. Source:
 * kustomize/api/internal/konfig/builtinpluginconsts.
 */
import { ClientError } from '../core/errors.ts';
import { listAt, textAt } from '../core/objects.ts';
import type { ImageEntry, Kustomization } from './kustomization.ts';
import {
  createMappingAt,
  isClusterKind,
  isFields,
  isNamed,
  mappingAt,
  nameOfResource,
  type Resource,
  TEMPLATE_PATHS,
} from './resource.ts';

type Map = Readonly<Record<string, string>>;

/** Kinds whose names never change. */
const FIXED_NAMES: ReadonlySet<string> = new Set(['CustomResourceDefinition', 'APIService', 'Namespace']);

export function setNamespace(resources: readonly Resource[], namespace: string): void {
  // Subjects refer to service accounts by their name and namespace before the change. The namespace may be missing in
  // the subject and in the account.
  const accounts = resources
    .filter(({ object }) => object.kind === 'ServiceAccount')
    .map((account) => ({ account, namespace: account.object.metadata?.namespace ?? '' }));
  for (const { object } of resources) {
    if (object.kind === 'Namespace') object.metadata = { ...object.metadata, name: namespace };
    else if (!isClusterKind(object)) object.metadata = { ...object.metadata, namespace };
    if (object.kind !== 'RoleBinding' && object.kind !== 'ClusterRoleBinding') continue;
    for (const subject of listAt(object, 'subjects')) {
      const name = textAt(subject, 'name');
      const isOwn = accounts.some(
        (each) => isNamed(each.account, name) && each.namespace === textAt(subject, 'namespace'),
      );
      if (textAt(subject, 'kind') === 'ServiceAccount' && (name === 'default' || isOwn))
        Object.assign(subject, { namespace });
    }
  }
}

export function affixNames(resources: readonly Resource[], prefix: string, suffix: string): void {
  if (prefix === '' && suffix === '') return;
  for (const resource of resources)
    if (!FIXED_NAMES.has(resource.object.kind ?? '')) rename(resource, prefix + nameOfResource(resource) + suffix);
}

export function rename(resource: Resource, name: string): void {
  resource.names.push(nameOfResource(resource));
  resource.object.metadata = { ...resource.object.metadata, name };
}

const merge = (target: object | undefined, values: Map): void => {
  if (target !== undefined) Object.assign(target, values);
};

export function addLabels({ object }: Resource, labels: Map, selectors: boolean, templates: boolean): void {
  merge(createMappingAt(object, ['metadata', 'labels']), labels);
  const kind = object.kind ?? '';
  const template = TEMPLATE_PATHS[kind];
  if (template !== undefined && (selectors || templates)) {
    const isJob = kind === 'Job' || kind === 'CronJob';
    if (mappingAt(object, template) !== undefined || !isJob)
      merge(createMappingAt(object, [...template, 'metadata', 'labels']), labels);
    if (kind === 'CronJob') merge(createMappingAt(object, ['spec', 'jobTemplate', 'metadata', 'labels']), labels);
    if (kind === 'StatefulSet')
      for (const claim of listAt(object, 'spec', 'volumeClaimTemplates'))
        merge(createMappingAt(claim, ['metadata', 'labels']), labels);
  }
  if (!selectors) return;
  if (kind === 'Service' || kind === 'ReplicationController')
    merge(createMappingAt(object, ['spec', 'selector']), labels);
  else if (['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet'].includes(kind))
    merge(createMappingAt(object, ['spec', 'selector', 'matchLabels']), labels);
  else if (kind === 'PodDisruptionBudget' || kind === 'Job')
    merge(mappingAt(object, ['spec', 'selector', 'matchLabels']), labels);
  else if (kind === 'NetworkPolicy') addPolicyLabels(object, labels);
}

function addPolicyLabels(object: object, labels: Map): void {
  merge(mappingAt(object, ['spec', 'podSelector', 'matchLabels']), labels);
  for (const [rules, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const)
    for (const rule of listAt(object, 'spec', rules))
      for (const peer of listAt(rule, peers)) merge(mappingAt(peer, ['podSelector', 'matchLabels']), labels);
}

export function addAnnotations({ object }: Resource, annotations: Map): void {
  merge(createMappingAt(object, ['metadata', 'annotations']), annotations);
  const template = TEMPLATE_PATHS[object.kind ?? ''];
  if (template !== undefined) merge(createMappingAt(object, [...template, 'metadata', 'annotations']), annotations);
  if (object.kind === 'CronJob')
    merge(createMappingAt(object, ['spec', 'jobTemplate', 'metadata', 'annotations']), annotations);
}

/** Changes images in all lists `containers` and `initContainers`, at any depth. */
export function setImages(value: unknown, images: readonly ImageEntry[]): void {
  if (Array.isArray(value)) for (const each of value) setImages(each, images);
  if (!isFields(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    if ((key === 'containers' || key === 'initContainers') && Array.isArray(inner))
      for (const container of inner)
        if (isFields(container) && typeof container['image'] === 'string')
          for (const image of images) container['image'] = changedImage(String(container['image']), image);
    setImages(inner, images);
  }
}

function changedImage(text: string, { name, newName, newTag, digest, tagSuffix }: ImageEntry): string {
  const [, before = '', tag = '', sum = ''] = /^(.*?)(?::([^/:@]*))?(?:@(.*))?$/.exec(text) ?? [];
  if (before !== name) return text;
  const base = newName ?? before;
  if (digest !== undefined && digest !== '') return `${base}@${digest}`;
  if (newTag !== undefined && newTag !== '') return `${base}:${newTag}`;
  if (tagSuffix !== undefined && tagSuffix !== '' && tag !== '') return `${base}:${tag}${tagSuffix}`;
  return `${base}${tag === '' ? '' : `:${tag}`}${sum === '' ? '' : `@${sum}`}`;
}

const SCALED: ReadonlySet<string> = new Set(['Deployment', 'ReplicationController', 'ReplicaSet', 'StatefulSet']);

export function setReplicas(resources: readonly Resource[], replicas: NonNullable<Kustomization['replicas']>): void {
  for (const { name, count } of replicas) {
    const found = resources.filter((each) => SCALED.has(each.object.kind ?? '') && isNamed(each, name));
    if (found.length === 0)
      throw new ClientError(
        `resource with name ${name} does not match a config with the following GVK [Deployment.[noVer].[noGrp] ReplicationController.[noVer].[noGrp] ReplicaSet.[noVer].[noGrp] StatefulSet.[noVer].[noGrp]]`,
      );
    for (const { object } of found) Object.assign(createMappingAt(object, ['spec']), { replicas: count });
  }
}
