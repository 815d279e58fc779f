/** Reads and checks a kustomization file. Source: sigs.k8s.io/kustomize/api/types. */
import { ClientError } from '../core/errors.ts';
import { documentsIn } from '../documents.ts';
import type { System } from '../port.ts';

export interface PatchTarget {
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly annotationSelector?: string;
}

export interface PatchEntry {
  readonly path?: string;
  readonly patch?: string;
  readonly target?: PatchTarget;
  readonly options?: { readonly allowNameChange?: boolean; readonly allowKindChange?: boolean };
}

export interface GeneratorOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly disableNameSuffixHash?: boolean;
  readonly immutable?: boolean;
}

export interface GeneratorEntry {
  readonly name: string;
  readonly namespace?: string;
  readonly behavior?: 'create' | 'merge' | 'replace';
  readonly files?: readonly string[];
  readonly literals?: readonly string[];
  readonly envs?: readonly string[];
  readonly env?: string;
  readonly type?: string;
  readonly options?: GeneratorOptions;
}

export interface LabelEntry {
  readonly pairs?: Readonly<Record<string, string>>;
  readonly includeSelectors?: boolean;
  readonly includeTemplates?: boolean;
}

export interface ImageEntry {
  readonly name: string;
  readonly newName?: string;
  readonly newTag?: string;
  readonly digest?: string;
  readonly tagSuffix?: string;
}

export interface Kustomization {
  readonly kind?: string;
  readonly resources?: readonly string[];
  readonly bases?: readonly string[];
  readonly components?: readonly string[];
  readonly namespace?: string;
  readonly namePrefix?: string;
  readonly nameSuffix?: string;
  readonly labels?: readonly LabelEntry[];
  readonly commonLabels?: Readonly<Record<string, string>>;
  readonly commonAnnotations?: Readonly<Record<string, string>>;
  readonly configMapGenerator?: readonly GeneratorEntry[];
  readonly secretGenerator?: readonly GeneratorEntry[];
  readonly generatorOptions?: GeneratorOptions;
  readonly images?: readonly ImageEntry[];
  readonly replicas?: readonly { readonly name: string; readonly count: number }[];
  readonly patches?: readonly PatchEntry[];
  readonly patchesStrategicMerge?: readonly string[];
  readonly patchesJson6902?: readonly PatchEntry[];
}

type Shape = 'text' | 'map' | 'texts' | 'entries';

const FIELDS: Readonly<Record<string, Shape>> = {
  apiVersion: 'text',
  kind: 'text',
  namespace: 'text',
  namePrefix: 'text',
  nameSuffix: 'text',
  metadata: 'map',
  commonLabels: 'map',
  commonAnnotations: 'map',
  generatorOptions: 'map',
  resources: 'texts',
  bases: 'texts',
  components: 'texts',
  patchesStrategicMerge: 'texts',
  labels: 'entries',
  configMapGenerator: 'entries',
  secretGenerator: 'entries',
  images: 'entries',
  replicas: 'entries',
  patches: 'entries',
  patchesJson6902: 'entries',
};

/** Fields of kustomize that this client rejects, because it does not implement them. */
const UNSUPPORTED: readonly string[] = [
  ...['vars', 'replacements', 'transformers', 'generators', 'validators', 'helmCharts', 'helmGlobals', 'openapi'],
  ...['helmChartInflationGenerator', 'configurations', 'crds', 'buildMetadata', 'sortOptions'],
];

const NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

/** Reads the kustomization file of the directory. Throws ClientError with the file and the field. */
export async function readKustomization(system: System, directory: string): Promise<Kustomization> {
  const found: string[] = [];
  for (const name of NAMES) if (await system.exists(`${directory}/${name}`)) found.push(name);
  const [name, second] = found;
  if (name === undefined)
    throw new ClientError(
      `unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '${directory}'`,
    );
  if (second !== undefined)
    throw new ClientError(`Found multiple kustomization files under: ${directory}; keep one of ${found.join(', ')}`);
  const path = `${directory}/${name}`;
  const text = Buffer.from(await system.readFile(path)).toString('utf8');
  const [document] = await documentsIn(path, text, '1.2');
  if (document === null || document === undefined) throw new ClientError('kustomization.yaml is empty');
  if (typeof document !== 'object' || Array.isArray(document)) throw new ClientError(`${path}: must be a mapping`);
  for (const [field, value] of Object.entries(document)) check(path, field, value);
  return document;
}

function check(path: string, field: string, value: unknown): void {
  if (UNSUPPORTED.includes(field))
    throw new ClientError(`${path}: the field "${field}" is not supported; render with kustomize and use apply -f -`);
  const shape = FIELDS[field];
  if (shape === undefined) throw new ClientError(`invalid Kustomization: json: unknown field "${field}"`);
  const isMap = (each: unknown): boolean => typeof each === 'object' && each !== null && !Array.isArray(each);
  const isList = (test: (each: unknown) => boolean): boolean => Array.isArray(value) && value.every(test);
  const isValid =
    value === null ||
    (shape === 'text'
      ? typeof value === 'string'
      : shape === 'map'
        ? isMap(value)
        : isList(shape === 'texts' ? (each) => typeof each === 'string' : isMap));
  const wanted = { text: 'a string', map: 'a mapping', texts: 'a list of strings', entries: 'a list of mappings' };
  if (!isValid) throw new ClientError(`${path}: ${field}: must be ${wanted[shape]}`);
}
