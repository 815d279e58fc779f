/** A valid document for every kind and version that both servers serve. */
import { apiVersionOf, type KubeObject } from '../../../src/api/meta/object.ts';
import type { KindDefinition } from '../../../src/api/registry/definition.ts';
import { defaulted, sample, storedKinds } from '../../api/kinds/samples.ts';
import type { Json } from './mutations.ts';
import type { Pair } from './pair.ts';

export interface Subject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly definition: KindDefinition;
  /** Path of the collection. */
  readonly path: string;
  readonly document: { readonly [key: string]: Json };
}

/** Kinds for which the sample is not sufficient. */
const SPECIAL = new Set(['ComponentStatus', 'CertificateSigningRequest']);

async function served(pair: Pair, path: string): Promise<Set<string>> {
  const names = async (connection: Pair['ours']): Promise<string[]> => {
    const reply = await connection.send({ method: 'GET', path });
    if (reply.code !== 200) return [];
    const { resources } = JSON.parse(reply.bytes.toString()) as { resources: { name: string }[] };
    return resources.map(({ name }) => name);
  };
  const [ours, theirs] = await Promise.all([names(pair.ours), names(pair.upstream)]);
  return new Set(ours.filter((name) => theirs.includes(name)));
}

/** A copy without fields that are newer than upstream's version, which rejects them. */
function older(document: KubeObject): KubeObject {
  const dropNew = (value: unknown): unknown => {
    if (Array.isArray(value))
      return value
        .filter((each) => (each as { restartPolicy?: unknown } | null)?.restartPolicy !== 'Always' || 'spec' in each)
        .map(dropNew);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, dropNew(each)]));
  };
  const copy = dropNew(document) as KubeObject & { spec?: { serviceAccountName?: string } };
  // Use an existing account: upstream's server projects a token for it, and no controller creates accounts here.
  if (copy.kind === 'Pod' && copy.spec !== undefined) copy.spec.serviceAccountName = 'default';
  return copy;
}

export async function subjects(pair: Pair): Promise<Subject[]> {
  const found: Subject[] = [];
  for (const definition of storedKinds) {
    if (!definition.verbs.includes('create') || SPECIAL.has(definition.kind)) continue;
    for (const alias of [undefined, ...(definition.aliases ?? [])]) {
      const version = alias ?? definition;
      const apiVersion = apiVersionOf(version);
      const root = version.group === '' ? `/api/${apiVersion}` : `/apis/${apiVersion}`;
      if (!(await served(pair, root)).has(definition.plural)) continue;
      const own = alias === undefined ? sample(definition.kind) : alias.convertFrom(defaulted(definition.kind));
      const { status: _, ...document } = older(own as KubeObject) as KubeObject & { status?: unknown };
      const metadata = { ...document.metadata, ...(definition.namespaced ? { namespace: 'ns' } : {}) };
      found.push({
        apiVersion,
        kind: definition.kind,
        definition,
        path: `${root}${definition.namespaced ? '/namespaces/ns' : ''}/${definition.plural}`,
        document: { ...document, apiVersion, kind: definition.kind, metadata } as unknown as Subject['document'],
      });
    }
  }
  return found;
}
