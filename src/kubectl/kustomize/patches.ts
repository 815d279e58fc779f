/** Applies the fields `patches`, `patchesStrategicMerge` and `patchesJson6902`. */
import { ClientError } from '../core/errors.ts';
import { type AnyObject, fieldAt } from '../core/objects.ts';
import { documentsIn } from '../documents.ts';
import type { PatchEntry, PatchTarget } from './kustomization.ts';
import { patchText } from './patching.ts';
import { groupVersionOf, isFields, isNamed, nameOfResource, type Resource } from './resource.ts';

/** Applies one patch of a kustomization. Resources that the patch deletes are removed from `resources`. */
export async function applyPatch(
  resources: Resource[],
  entry: PatchEntry,
  text: string,
  source: string,
): Promise<void> {
  for (const document of await documentsIn(source, text, '1.2')) {
    if (document === null || document === undefined) continue;
    if (Array.isArray(document)) {
      if (entry.target === undefined)
        throw new ClientError(`${source}: a JSON patch needs a target; name kind and name`);
      for (const resource of selected(resources, entry.target)) change(resource, document, 'json', entry);
      continue;
    }
    if (!isFields(document))
      throw new ClientError(`${source}: unable to parse SM or JSON patch; use a mapping or a list`);
    const patch: AnyObject = document;
    const targets = entry.target === undefined ? namedBy(resources, patch) : selected(resources, entry.target);
    for (const resource of targets) {
      if (patch['$patch'] === 'delete') resources.splice(resources.indexOf(resource), 1);
      else change(resource, patch, 'strategic', entry);
    }
  }
}

/** Patches a resource. Name, namespace and kind are kept unless the options allow a change. */
function change(resource: Resource, patch: object, type: 'json' | 'strategic', { options }: PatchEntry): void {
  const before = resource.object;
  const after = patchText(before, patch, type);
  const { name, namespace } = before.metadata ?? {};
  const isFixed = type === 'strategic' && options?.allowNameChange !== true;
  resource.object =
    type === 'strategic'
      ? ({
          ...after,
          ...(options?.allowKindChange === true ? {} : { apiVersion: before.apiVersion, kind: before.kind }),
          metadata: {
            ...after.metadata,
            ...(isFixed ? { name, ...(namespace === undefined ? {} : { namespace }) } : {}),
          },
        } as AnyObject)
      : after;
}

/** Finds the resource whose kind and name a strategic merge patch specifies in its own metadata. */
function namedBy(resources: readonly Resource[], patch: AnyObject): Resource[] {
  const { group, version } = groupVersionOf(patch);
  const name = patch.metadata?.name ?? '';
  const found = resources.filter(
    (each) =>
      each.object.kind === patch.kind &&
      groupVersionOf(each.object).group === group &&
      isNamed(each, name) &&
      (patch.metadata?.namespace === undefined ||
        (each.object.metadata?.namespace ?? 'default') === patch.metadata.namespace),
  );
  if (found.length === 0)
    throw new ClientError(
      `no resource matches strategic merge patch "${patch.kind}.${version}.${group === '' ? '[noGrp]' : group}/${name}.${patch.metadata?.namespace ?? '[noNs]'}": no matches for Id ${patch.kind}.${version}.${group === '' ? '[noGrp]' : group}/${name}.${patch.metadata?.namespace ?? '[noNs]'}; failed to find unique target for patch ${patch.kind}.${version}.${group === '' ? '[noGrp]' : group}/${name}.${patch.metadata?.namespace ?? '[noNs]'}`,
    );
  return found;
}

function selected(resources: readonly Resource[], target: PatchTarget): Resource[] {
  const matches = (pattern: string | undefined, ...texts: readonly string[]): boolean => {
    if (pattern === undefined || pattern === '') return true;
    let expression: RegExp;
    try {
      expression = new RegExp(`^(?:${pattern})$`);
    } catch {
      throw new ClientError(`patches: target: ${JSON.stringify(pattern)} is not a regular expression`);
    }
    return texts.some((text) => expression.test(text));
  };
  return resources.filter((each) => {
    const { group, version } = groupVersionOf(each.object);
    return (
      matches(target.group, group) &&
      matches(target.version, version) &&
      matches(target.kind, each.object.kind ?? '') &&
      matches(target.name, nameOfResource(each), ...each.names) &&
      matches(target.namespace, each.object.metadata?.namespace ?? 'default') &&
      hasLabels(fieldAt(each.object, 'metadata', 'labels'), target.labelSelector) &&
      hasLabels(fieldAt(each.object, 'metadata', 'annotations'), target.annotationSelector)
    );
  });
}

/** Whether labels match a selector such as `a=b,c!=d,e,!f`. */
function hasLabels(values: unknown, selector: string | undefined): boolean {
  if (selector === undefined || selector === '') return true;
  const labels = isFields(values) ? values : {};
  return selector.split(',').every((text) => {
    const [, not = '', key = '', operator = '', value = ''] =
      /^\s*(!?)([^=!\s]+)\s*(==?|!=)?\s*(.*?)\s*$/.exec(text) ?? [];
    if (key === '' || /\s/.test(value))
      throw new ClientError(
        `patches: target: the selector ${JSON.stringify(selector)} is not supported; use KEY=VALUE,…`,
      );
    if (operator === '') return Object.hasOwn(labels, key) !== (not === '!');
    return (labels[key] === value) !== (operator === '!=');
  });
}
