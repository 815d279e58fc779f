/**
 * Package manifests, which describe packages that can be installed. Source: operator-lifecycle-manager
 * pkg/package-server/apis/operators/v1 (CreateCSVDescription). Icons are omitted, because they are the largest part of
 * a catalog.
 */
import type { CatalogSource, PackageManifestStatus } from '../kinds/types.ts';
import { fieldsOf, listOf, textOf } from './catalog/blobs.ts';
import type { CatalogPackage } from './catalog/catalog.ts';

/** Maximum number of characters of a description. Descriptions are only displayed, so they may be cut. */
const MAX_DESCRIPTION = 8 * 1024;
const MAX_ANNOTATION = 1024;

/**
 * Computes the manifest of a package.
 *
 * @param metadata CSV or property olm.csv.metadata of each channel's head, by name of the bundle.
 */
export function manifestOf(
  owner: CatalogPackage,
  source: CatalogSource,
  metadata: ReadonlyMap<string, unknown>,
): PackageManifestStatus {
  const { name = '', namespace = '' } = source.metadata ?? {};
  const defaultHead = owner.channels.find((each) => each.name === owner.defaultChannel)?.head ?? '';
  return {
    catalogSource: name,
    catalogSourceDisplayName: source.spec?.displayName ?? '',
    catalogSourcePublisher: source.spec?.publisher ?? '',
    catalogSourceNamespace: namespace,
    provider: fieldsOf(specOf(metadata.get(defaultHead))['provider']),
    packageName: owner.name,
    defaultChannel: owner.defaultChannel,
    channels: owner.channels.map((channel) => ({
      name: channel.name,
      currentCSV: channel.head,
      currentCSVDesc: describe(metadata.get(channel.head), owner.bundles.get(channel.head)?.versionText ?? ''),
      entries: channel.entries.map((each) => ({
        name: each.name,
        version: owner.bundles.get(each.name)?.versionText ?? '',
      })),
    })),
  };
}

/** Fields of the description: those in `spec` of a CSV, or the top-level fields of olm.csv.metadata. */
const specOf = (value: unknown): Readonly<Record<string, unknown>> => {
  const fields = fieldsOf(value);
  return fields['spec'] === undefined ? fields : fieldsOf(fields['spec']);
};

function annotationsOf(value: unknown): Record<string, string> {
  const fields = fieldsOf(value);
  const annotations = fieldsOf(
    fields['spec'] === undefined ? fields['annotations'] : fieldsOf(fields['metadata'])['annotations'],
  );
  return Object.fromEntries(
    Object.entries(annotations).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length <= MAX_ANNOTATION,
    ),
  );
}

function describe(value: unknown, version: string): object {
  const spec = specOf(value);
  const description = textOf(spec['description']);
  const definitions = fieldsOf(spec['customresourcedefinitions']);
  const described = (list: unknown): object[] =>
    listOf(list).map((each) => {
      const { name, version: served, kind, displayName, description: text } = fieldsOf(each);
      return { name, version: served, kind, displayName, description: textOf(text).slice(0, MAX_ANNOTATION) };
    });
  return {
    displayName: textOf(spec['displayName']),
    version,
    provider: fieldsOf(spec['provider']),
    annotations: annotationsOf(value),
    keywords: listOf(spec['keywords']).filter((each) => typeof each === 'string'),
    links: listOf(spec['links']),
    maintainers: listOf(spec['maintainers']),
    maturity: textOf(spec['maturity']),
    description: description.length > MAX_DESCRIPTION ? `${description.slice(0, MAX_DESCRIPTION)}…` : description,
    installModes: listOf(spec['installModes']),
    customresourcedefinitions: {
      owned: described(definitions['owned']),
      required: described(definitions['required']),
    },
    ...(spec['apiservicedefinitions'] === undefined ? {} : { apiservicedefinitions: spec['apiservicedefinitions'] }),
    minKubeVersion: textOf(spec['minKubeVersion']),
    nativeAPIs: listOf(spec['nativeAPIs']),
    relatedImages: listOf(spec['relatedImages']).map((each) => textOf(fieldsOf(each)['image'])),
  };
}

/** Labels of a package manifest, which identify its catalog. */
export function manifestLabels(source: CatalogSource): Record<string, string> {
  const { name = '', namespace = '' } = source.metadata ?? {};
  return { catalog: name, 'catalog-namespace': namespace };
}
