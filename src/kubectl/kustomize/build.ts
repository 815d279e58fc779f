/** Builds a kustomization: resources, components, generators, then transformations in the order of kustomize. */
import { messageOf } from '../../base/errors.ts';
import { ClientError } from '../core/errors.ts';
import { type AnyObject, objectsIn } from '../core/objects.ts';
import { documentsIn } from '../documents.ts';
import type { System } from '../port.ts';
import { generate } from './generators.ts';
import { type Kustomization, readKustomization } from './kustomization.ts';
import { nameHash } from './name-hash.ts';
import { applyPatch } from './patches.ts';
import { updateReferences } from './references.ts';
import { nameOfResource, type Resource } from './resource.ts';
import { addAnnotations, addLabels, affixNames, rename, setImages, setNamespace, setReplicas } from './transform.ts';

const MAX_DEPTH = 32;

/**
 * Builds the objects of the kustomization in a directory, in kustomize's order. Throws ClientError with the file and
 * the field.
 */
export async function buildKustomization(
  system: System,
  directory: string,
  warn: (text: string) => void = () => {},
): Promise<AnyObject[]> {
  if (/^[a-z]+:\/\/|^git@|\?ref=/.test(directory))
    throw new ClientError(`${directory}: only local directories are supported; clone the repository`);
  const root = await placeOf(system, '', directory);
  const warned = deprecations(await readKustomization(system, root));
  const resources = await build(system, root, []);
  for (const text of warned) warn(text);
  for (const resource of resources)
    if (resource.needsHash)
      rename(resource, `${nameOfResource(resource)}-${nameHash({ ...resource.object, metadata: {} })}`);
  updateReferences(resources);
  return ordered(resources.map(({ object }) => object));
}

/** Fields that kustomize has replaced, with the fields to use instead. */
const DEPRECATED: Readonly<Record<string, string>> = {
  bases: 'resources',
  commonLabels: 'labels',
  patchesJson6902: 'patches',
  patchesStrategicMerge: 'patches',
};

const deprecations = (file: Kustomization): string[] =>
  Object.entries(DEPRECATED)
    .filter(([field]) => Object.hasOwn(file, field))
    .map(
      ([field, next]) =>
        `# Warning: '${field}' is deprecated. Please use '${next}' instead. Run 'kustomize edit fix' to update your Kustomization automatically.\n`,
    );

/** Absolute path without symbolic links. A link can then neither lead out of a directory nor hide a cycle. */
async function placeOf(system: System, directory: string, path: string): Promise<string> {
  const full = system.absolutePath(directory === '' || path.startsWith('/') ? path : `${directory}/${path}`);
  // If the file is missing, the later read reports the error.
  return system.realPath(full).catch(() => full);
}

function refuseCycle(directory: string, above: readonly string[]): void {
  if (above.includes(directory) || above.length > MAX_DEPTH)
    throw new ClientError(
      `cycle detected: candidate root '${directory}' contains visited root '${above.at(-1) ?? ''}'`,
    );
}

async function build(system: System, directory: string, above: readonly string[]): Promise<Resource[]> {
  refuseCycle(directory, above);
  const file = await readKustomization(system, directory);
  const resources: Resource[] = [];
  for (const path of [...(file.resources ?? []), ...(file.bases ?? [])])
    add(resources, await accumulate(system, directory, path, above));
  return transformed(system, directory, file, resources, above);
}

async function accumulate(
  system: System,
  directory: string,
  path: string,
  above: readonly string[],
): Promise<Resource[]> {
  if (/^[a-z]+:\/\/|^git@|^github\.com\//.test(path))
    throw new ClientError(`resources: ${path}: remote resources are not supported; use a local copy`);
  const full = system.absolutePath(path.startsWith('/') ? path : `${directory}/${path}`);
  if (!(await system.exists(full)))
    throw new ClientError(
      `accumulating resources: accumulation err='accumulating resources from '${path}': evalsymlink failure on '${full}' : lstat ${full}: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on '${full}' : lstat ${full}: no such file or directory`,
    );
  if ((await system.filesIn(full)) !== undefined)
    return build(system, await placeOf(system, '', full), [...above, directory]);
  const bytes = await read(system, directory, path, '').catch((error: unknown) => {
    throw new ClientError(
      `accumulating resources: accumulation err='accumulating resources from '${path}': ${messageOf(error)}': must build at directory: '${full}': file is not directory`,
    );
  });
  return (await documentsIn(full, Buffer.from(bytes).toString('utf8'), '1.2'))
    .flatMap((document) => objectsIn(document, full))
    .map((object) => ({ object, names: [], needsHash: false }));
}

function add(resources: Resource[], more: readonly Resource[]): void {
  const idOf = ({ object }: Resource): string =>
    [object.apiVersion, object.kind, object.metadata?.namespace ?? '', object.metadata?.name].join('/');
  for (const each of more) {
    if (resources.some((known) => idOf(known) === idOf(each)))
      throw new ClientError(`resources: may not add resource with an already registered id: ${idOf(each)}`);
    resources.push(each);
  }
}

/** Reads a file of a kustomization, which must be in the kustomization's directory or below. */
async function read(system: System, directory: string, path: string, field: string): Promise<Uint8Array> {
  const full = await placeOf(system, directory, path);
  if (!full.startsWith(directory.endsWith('/') ? directory : `${directory}/`))
    throw new ClientError(
      `${field === '' ? '' : `${field}: `}security; file '${full}' is not in or below '${directory}'`,
    );
  return system.readFile(full);
}

async function transformed(
  system: System,
  directory: string,
  file: Kustomization,
  resources: Resource[],
  above: readonly string[],
): Promise<Resource[]> {
  for (const path of file.components ?? []) {
    const full = await placeOf(system, directory, path);
    refuseCycle(full, [...above, directory]);
    const component = await readKustomization(system, full);
    if (component.kind !== 'Component')
      throw new ClientError(
        `components: expected kind 'Component' for path '${path}' but got '${component.kind ?? ''}'`,
      );
    for (const inner of [...(component.resources ?? []), ...(component.bases ?? [])])
      add(resources, await accumulate(system, full, inner, [...above, directory]));
    await transformed(system, full, component, resources, [...above, directory]);
  }
  const load = (path: string, field: string): Promise<Uint8Array> => read(system, directory, path, field);
  const text = async (path: string, field: string): Promise<string> =>
    Buffer.from(await load(path, field)).toString('utf8');
  for (const entry of file.configMapGenerator ?? [])
    await generate(resources, 'ConfigMap', entry, file.generatorOptions, load);
  for (const entry of file.secretGenerator ?? [])
    await generate(resources, 'Secret', entry, file.generatorOptions, load);
  for (const patch of file.patchesStrategicMerge ?? [])
    await applyPatch(
      resources,
      {},
      patch.includes('\n') ? patch : await text(patch, 'patchesStrategicMerge'),
      'patchesStrategicMerge',
    );
  for (const entry of file.patches ?? []) await applyPatch(resources, entry, await patchOf(entry, text), 'patches');
  if (file.namespace !== undefined && file.namespace !== '') setNamespace(resources, file.namespace);
  affixNames(resources, file.namePrefix ?? '', file.nameSuffix ?? '');
  for (const resource of resources) {
    for (const { pairs = {}, includeSelectors, includeTemplates } of file.labels ?? [])
      addLabels(resource, pairs, includeSelectors === true, includeTemplates === true);
    if (file.commonLabels !== undefined && file.commonLabels !== null)
      addLabels(resource, file.commonLabels, true, true);
    if (file.commonAnnotations !== undefined && file.commonAnnotations !== null)
      addAnnotations(resource, file.commonAnnotations);
  }
  for (const entry of file.patchesJson6902 ?? [])
    await applyPatch(resources, entry, await patchOf(entry, text), 'patchesJson6902');
  setReplicas(resources, file.replicas ?? []);
  for (const { object } of resources) if (file.images !== undefined) setImages(object, file.images);
  updateReferences(resources);
  return resources;
}

async function patchOf(
  { path, patch }: { readonly path?: string; readonly patch?: string },
  text: (path: string, field: string) => Promise<string>,
): Promise<string> {
  if (path !== undefined && path !== '') return text(path, 'patches');
  if (patch === undefined || patch === '') throw new ClientError('patches: must specify one of patch and path');
  return patch;
}

/** Kinds that other kinds depend on come first, webhooks come last. Source: kustomize SortOrderTransformer.go. */
const FIRST = [
  ...['Namespace', 'ResourceQuota', 'StorageClass', 'CustomResourceDefinition', 'ServiceAccount', 'PodSecurityPolicy'],
  ...['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding', 'ConfigMap', 'Secret', 'Endpoints', 'Service'],
  ...['LimitRange', 'PriorityClass', 'PersistentVolume', 'PersistentVolumeClaim', 'Deployment', 'StatefulSet'],
  ...['CronJob', 'PodDisruptionBudget'],
];
const LAST = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'];

function ordered(objects: readonly AnyObject[]): AnyObject[] {
  const rank = ({ kind = '' }: AnyObject): number =>
    FIRST.includes(kind) ? FIRST.indexOf(kind) - FIRST.length : LAST.indexOf(kind) + 1;
  const key = ({ apiVersion = '', kind = '', metadata }: AnyObject): string => {
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    return [group, version, kind].join('_') + (metadata?.namespace ?? '') + (metadata?.name ?? '');
  };
  return objects.toSorted(
    (left, right) => rank(left) - rank(right) || (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0),
  );
}
