/**
 * Converts catalogs in ConfigMaps from the older format (lists of versions, custom resources and packages) to documents
 * of a file-based catalog. Source: operator-registry pkg/sqlite/configmap.go.
 */
import { encodeBase64 } from '../../../../../api/validation/base64.ts';
import { fieldsOf, listOf, textOf } from './blobs.ts';

export const LEGACY_KEYS = ['packages', 'clusterServiceVersions', 'customResourceDefinitions'] as const;

type Fields = Readonly<Record<string, unknown>>;

/** Creates the documents. Each argument is the parsed list under the key of LEGACY_KEYS with the same index. */
export function legacyDocuments(packages: unknown, versions: unknown, definitions: unknown): object[] {
  const csvs = new Map(listOf(versions).map((each) => [nameOf(each), fieldsOf(each)]));
  const crds = new Map(listOf(definitions).map((each) => [nameOf(each), fieldsOf(each)]));
  return listOf(packages).flatMap((each) => documentsOf(fieldsOf(each), csvs, crds));
}

const nameOf = (object: unknown): string => textOf(fieldsOf(fieldsOf(object)['metadata'])['name']);

function documentsOf(
  described: Fields,
  csvs: ReadonlyMap<string, Fields>,
  crds: ReadonlyMap<string, Fields>,
): object[] {
  const name = textOf(described['packageName']);
  const channels = listOf(described['channels']).map(fieldsOf);
  const defaultChannel = textOf(described['defaultChannel']) || textOf(channels[0]?.['name']);
  const used = new Map<string, Fields>();
  const made = channels.map((channel) => {
    const entries: object[] = [];
    const passed = new Set<string>();
    for (let current = textOf(channel['currentCSV']); csvs.has(current) && !passed.has(current); ) {
      passed.add(current);
      const csv = csvs.get(current) ?? {};
      used.set(current, csv);
      const { replaces, skips } = fieldsOf(csv['spec']);
      const skipRange = fieldsOf(fieldsOf(csv['metadata'])['annotations'])['olm.skipRange'];
      entries.push({ name: current, replaces, skips, skipRange });
      current = textOf(replaces);
    }
    return { schema: 'olm.channel', package: name, name: textOf(channel['name']), entries };
  });
  const bundles = [...used].map(([each, csv]) => bundleOf(name, each, csv, crds));
  return [{ schema: 'olm.package', name, defaultChannel }, ...made, ...bundles];
}

function bundleOf(owner: string, name: string, csv: Fields, crds: ReadonlyMap<string, Fields>): object {
  const spec = fieldsOf(csv['spec']);
  const { owned, required } = fieldsOf(spec['customresourcedefinitions']);
  const own = listOf(owned).map(fieldsOf);
  const objects = [csv, ...own.map((each) => crds.get(textOf(each['name']))).filter((each) => each !== undefined)];
  const gvk = (each: Fields): object => ({
    group: textOf(each['name']).split('.').slice(1).join('.'),
    version: each['version'],
    kind: each['kind'],
  });
  return {
    schema: 'olm.bundle',
    package: owner,
    name,
    properties: [
      { type: 'olm.package', value: { packageName: owner, version: textOf(spec['version']) } },
      ...own.map((each) => ({ type: 'olm.gvk', value: gvk(each) })),
      ...listOf(required).map((each) => ({ type: 'olm.gvk.required', value: gvk(fieldsOf(each)) })),
      ...objects.map((each) => ({ type: 'olm.bundle.object', value: { data: encodeBase64(JSON.stringify(each)) } })),
    ],
  };
}
