/** Kinds whose delete answers with the object that was deleted, and not with a status. Source: `ReturnDeletedObject` of upstream's registries. */
import type { KindDefinition } from './definition.ts';

const RETURN_DELETED: ReadonlySet<string> = new Set([
  'csidrivers',
  'csinodes',
  'deviceclasses',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'podtemplates',
  'resourceclaims',
  'resourceclaimtemplates',
  'resourcequotas',
  'resourceslices',
  'serviceaccounts',
  'services',
  'storageclasses',
  'volumeattachments',
  'volumeattributesclasses',
]);

export function returnsDeleted(kind: KindDefinition): boolean {
  return kind.custom === undefined && RETURN_DELETED.has(kind.plural);
}
