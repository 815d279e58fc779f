import { fieldsOf, listOf } from './blobs.ts';
import type { Bundle } from './catalog.ts';

/** Properties of a bundle as its catalog declares them, without the properties that contain the bundle's objects. */
export function propertiesOf(owner: string, bundle: Bundle): readonly unknown[] {
  const { versionText: version, provides, requires, otherProperties } = bundle;
  return [
    { type: 'olm.package', value: { packageName: owner, version } },
    ...provides.map((each) => ({ type: 'olm.gvk', value: gvkOf(each) })),
    ...requires.flatMap((each): unknown[] => {
      if (each.type === 'gvk') return [{ type: 'olm.gvk.required', value: gvkOf(each.gvk) }];
      if (each.type !== 'package') return [];
      return [{ type: 'olm.package.required', value: { packageName: each.name, versionRange: each.range } }];
    }),
    ...(otherProperties === '' ? [] : listOf(JSON.parse(otherProperties)).map(fieldsOf)),
  ];
}

function gvkOf(key: string): object {
  const [group = '', version = '', kind = ''] = key.split('/');
  return { group, version, kind };
}
