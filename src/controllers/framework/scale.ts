/** Reads the scale sub-resource of any workload controller, including kinds that are known only at run time. */
import type { OwnerReference } from '../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ControllerScale } from '../workloads/disruption/scale.ts';
import type { Capabilities } from './capabilities.ts';

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

export type Scale = KubeObject & {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly replicas?: number; readonly selector?: string };
};

/** Formats of an owner reference's fields that may become part of a path, because owner references are user input. */
const API_VERSION = /^(?:[a-z0-9.-]{1,253}\/)?v[a-z0-9]{1,62}$/;
const NAME = /^(?!\.{1,2}$)[^/%]{1,253}$/;

/**
 * Reads the scale of an object. Resolves with undefined when the object does not exist. Throws for kinds that the
 * server does not serve or that have no scale.
 */
export async function readScale(
  read: Capabilities['read'],
  reference: OwnerReference,
  namespace: string,
  signal: AbortSignal,
): Promise<ControllerScale | undefined> {
  const { path } = await scaleEndpoint(read, reference, namespace, signal);
  const scale = await unlessAbsent(read<Scale>(path, signal));
  const { uid } = reference;
  return scale?.metadata?.uid === uid ? { uid, replicas: scale.spec?.replicas ?? 0 } : undefined;
}

export interface ScaleEndpoint {
  /** Path of the object's scale. */
  readonly path: string;
  /** `<plural>.<group>`, or `<plural>` for the core group. */
  readonly resource: string;
}

/**
 * Path and resource of an object's scale. Throws for kinds that the server does not serve, and for kinds without a
 * scale unless `scalable` is false.
 */
export async function scaleEndpoint(
  read: Capabilities['read'],
  { apiVersion, kind, name }: { readonly apiVersion: string; readonly kind: string; readonly name: string },
  namespace: string,
  signal: AbortSignal,
  { scalable = true }: { readonly scalable?: boolean } = {},
): Promise<ScaleEndpoint> {
  const noMatch = new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`);
  if (!API_VERSION.test(apiVersion) || !NAME.test(name)) throw noMatch;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const list = await unlessAbsent(read<ResourceList>(root, signal));
  const resources = list?.resources ?? [];
  const found = resources.find((each) => each.kind === kind && each.namespaced && !each.name.includes('/'));
  if (found === undefined) throw noMatch;
  const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0] ?? ''}` : '';
  const resource = `${found.name}${group}`;
  if (scalable && !resources.some((each) => each.name === `${found.name}/scale`)) {
    throw new Error(`${resource} does not implement the scale subresource`);
  }
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${found.name}/${encodeURIComponent(name)}/scale`;
  return { path, resource };
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
