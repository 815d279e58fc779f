/** Reads the scale sub-resource of any pod controller, kinds that are known only at run time included. */
import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ControllerScale } from '../../core/reconcile/disruption/scale.ts';
import type { Capabilities } from './capabilities.ts';

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

type Scale = KubeObject & { readonly spec?: { readonly replicas?: number } };

/** Owner references are user input: they become part of a path only in this form. */
const API_VERSION = /^(?:[a-z0-9.-]{1,253}\/)?v[a-z0-9]{1,62}$/;
const NAME = /^(?!\.{1,2}$)[^/%]{1,253}$/;

/** Undefined: there is no such object. Throws for kinds that the server does not have, or that have no scale. */
export async function readScale(
  read: Capabilities['read'],
  reference: OwnerReference,
  namespace: string,
  signal: AbortSignal,
): Promise<ControllerScale | undefined> {
  const { apiVersion, kind, name, uid } = reference;
  const noMatch = new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`);
  if (!API_VERSION.test(apiVersion) || !NAME.test(name)) throw noMatch;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const list = await unlessAbsent(read<ResourceList>(root, signal));
  const resources = list?.resources ?? [];
  const found = resources.find((each) => each.kind === kind && each.namespaced && !each.name.includes('/'));
  if (found === undefined) throw noMatch;
  if (!resources.some((each) => each.name === `${found.name}/scale`)) {
    const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0] ?? ''}` : '';
    throw new Error(`${found.name}${group} does not implement the scale subresource`);
  }
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${found.name}/${encodeURIComponent(name)}/scale`;
  const scale = await unlessAbsent(read<Scale>(path, signal));
  return scale?.metadata?.uid === uid ? { uid, replicas: scale.spec?.replicas ?? 0 } : undefined;
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
