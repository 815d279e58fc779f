/** Operator catalogs for tests. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface OperatorOptions {
  /** Name without version: `web`. */
  readonly name: string;
  readonly version: string;
  readonly image?: string;
  readonly replaces?: string;
  readonly clusterRules?: readonly object[];
  readonly rules?: readonly object[];
  readonly modes?: readonly string[];
  readonly webhooks?: readonly object[];
  readonly crd?: {
    readonly plural: string;
    readonly kind: string;
    readonly versions?: readonly string[];
    readonly group?: string;
  };
  readonly apis?: readonly object[];
  readonly properties?: readonly object[];
  readonly command?: readonly string[];
  readonly description?: string;
}

const GROUP = 'lab.example';

export const csvName = ({ name, version }: { readonly name: string; readonly version: string }): string =>
  `${name}.v${version}`;

export function crdOf({ plural, kind, versions = ['v1'], group = GROUP }: NonNullable<OperatorOptions['crd']>): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      })),
    },
  };
}

export function csvOf(options: OperatorOptions): object {
  const { name, version, image = 'operator', modes = ['OwnNamespace', 'SingleNamespace'], crd } = options;
  const labels = { name };
  const owned =
    crd === undefined
      ? []
      : [{ name: `${crd.plural}.${crd.group ?? GROUP}`, version: crd.versions?.[0] ?? 'v1', kind: crd.kind }];
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: csvName(options), annotations: { 'alm-examples': '[]' } },
    spec: {
      displayName: `Operator ${name}`,
      description: options.description ?? 'An operator of a test.',
      version,
      provider: { name: 'Lab' },
      installModes: ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'].map((type) => ({
        type,
        supported: modes.includes(type),
      })),
      customresourcedefinitions: { owned },
      ...(options.apis === undefined ? {} : { apiservicedefinitions: { owned: options.apis } }),
      webhookdefinitions: options.webhooks ?? [],
      install: {
        strategy: 'deployment',
        spec: {
          permissions: options.rules === undefined ? [] : [{ serviceAccountName: name, rules: options.rules }],
          clusterPermissions:
            options.clusterRules === undefined ? [] : [{ serviceAccountName: name, rules: options.clusterRules }],
          deployments: [
            {
              name,
              spec: {
                replicas: 1,
                selector: { matchLabels: labels },
                template: {
                  metadata: { labels },
                  spec: {
                    ...(options.rules === undefined && options.clusterRules === undefined
                      ? {}
                      : { serviceAccountName: name }),
                    terminationGracePeriodSeconds: 0,
                    containers: [
                      {
                        name: 'operator',
                        image,
                        imagePullPolicy: 'IfNotPresent',
                        ...(options.command === undefined ? {} : { command: options.command }),
                      },
                    ],
                  },
                },
              },
            },
          ],
        },
      },
    },
  };
}

/** A bundle that contains its objects. */
export function bundleOf(options: OperatorOptions): object {
  const { name, version, crd, properties = [] } = options;
  const objects = [csvOf(options), ...(crd === undefined ? [] : [crdOf(crd)])];
  return {
    schema: 'olm.bundle',
    package: name,
    name: csvName(options),
    properties: [
      { type: 'olm.package', value: { packageName: name, version } },
      ...(crd === undefined
        ? []
        : [{ type: 'olm.gvk', value: { group: crd.group ?? GROUP, version: 'v1', kind: crd.kind } }]),
      ...properties,
      ...objects.map((each) => ({
        type: 'olm.bundle.object',
        value: { data: Buffer.from(JSON.stringify(each)).toString('base64') },
      })),
    ],
  };
}

/** A package with one channel, oldest version first. */
export function packageOf(name: string, versions: readonly OperatorOptions[], channel = 'stable'): object[] {
  return [
    { schema: 'olm.package', name, defaultChannel: channel },
    {
      schema: 'olm.channel',
      package: name,
      name: channel,
      entries: versions.map((each, index) => {
        const before = versions[index - 1];
        return { name: csvName(each), ...(before === undefined ? {} : { replaces: csvName(before) }) };
      }),
    },
    ...versions.map(bundleOf),
  ];
}

/** Replaces the whole catalog, as an administrator would with `mv`. */
export async function writeCatalog(directory: string, documents: readonly object[]): Promise<void> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, '.catalog.json');
  await writeFile(path, documents.map((each) => JSON.stringify(each, undefined, 1)).join('\n'));
  await rename(path, join(directory, 'catalog.json'));
}
