/** References to names that a kustomization changes. Source: kustomize builtinpluginconsts/namereference.go. */
import { groupVersionOf, isFields, nameOfResource, type Resource } from './resource.ts';

type Fields = Record<string, unknown>;

/** Kind of the referenced object, by a field that contains a mapping with `name`. */
const NAMED: Readonly<Record<string, string>> = {
  configMap: 'ConfigMap',
  configMapRef: 'ConfigMap',
  configMapKeyRef: 'ConfigMap',
  secret: 'Secret',
  secretRef: 'Secret',
  secretKeyRef: 'Secret',
  service: 'Service',
};
/** Kind of the referenced object, by a field that contains the name itself. */
const PLAIN: Readonly<Record<string, string>> = {
  secretName: 'Secret',
  serviceAccountName: 'ServiceAccount',
  serviceAccount: 'ServiceAccount',
  claimName: 'PersistentVolumeClaim',
  serviceName: 'Service',
  storageClassName: 'StorageClass',
  volumeName: 'PersistentVolume',
  priorityClassName: 'PriorityClass',
  ingressClassName: 'IngressClass',
};
/** Fields that contain a mapping with `kind` and `name`. */
const TYPED: ReadonlySet<string> = new Set(['roleRef', 'scaleTargetRef']);
/** Kind of the referenced objects, by a field that contains a list of mappings with `name`. */
const LISTS: Readonly<Record<string, string>> = { imagePullSecrets: 'Secret', secrets: 'Secret' };

const BUILT_IN = /^(?:|apps|batch|autoscaling|policy|extensions|.*\.k8s\.io)$/;

/** Replaces former names of resources with the current ones in all references. */
export function updateReferences(resources: readonly Resource[]): void {
  const renamed = resources.filter(({ names }) => names.length > 0);
  if (renamed.length === 0) return;
  for (const { object } of resources)
    if (BUILT_IN.test(groupVersionOf(object).group))
      visit(object, (kind, name, namespace) => currentName(renamed, kind, name, namespace));
}

/**
 * Current name of the resource that had the given name. The name is returned unchanged if a resource has it now.
 * Resources whose latest former name matches take precedence.
 */
function currentName(renamed: readonly Resource[], kind: string, name: string, namespace: string | undefined): string {
  const ofKind = renamed.filter(
    ({ object }) =>
      object.kind === kind && (namespace === undefined || (object.metadata?.namespace ?? '') === namespace),
  );
  if (ofKind.some((each) => nameOfResource(each) === name)) return name;
  const found = ofKind.find(({ names }) => names.at(-1) === name) ?? ofKind.find(({ names }) => names.includes(name));
  return found === undefined ? name : nameOfResource(found);
}

/**
 * Returns the current name of an object. `namespace` limits the search to one namespace; '' stands for objects without
 * a namespace.
 */
type NameFor = (kind: string, name: string, namespace?: string) => string;

function visit(value: unknown, nameFor: NameFor): void {
  if (Array.isArray(value)) for (const each of value) visit(each, nameFor);
  if (!isFields(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'metadata') continue;
    const plain = PLAIN[key];
    if (plain !== undefined && typeof inner === 'string') value[key] = nameFor(plain, inner);
    const kind = NAMED[key];
    if (kind !== undefined) update(inner, kind, nameFor);
    if (TYPED.has(key) && isFields(inner)) update(inner, String(inner['kind'] ?? ''), nameFor);
    const listed = LISTS[key];
    if (listed !== undefined && Array.isArray(inner)) for (const each of inner) update(each, listed, nameFor);
    if (key === 'subjects' && Array.isArray(inner))
      for (const each of inner)
        if (isFields(each) && each['kind'] === 'ServiceAccount')
          update(each, 'ServiceAccount', nameFor, String(each['namespace'] ?? ''));
    visit(inner, nameFor);
  }
}

function update(holder: unknown, kind: string, nameFor: NameFor, namespace?: string): void {
  const fields: Fields | undefined = isFields(holder) ? holder : undefined;
  if (fields !== undefined && typeof fields['name'] === 'string')
    fields['name'] = nameFor(kind, fields['name'], namespace);
}
