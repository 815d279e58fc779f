/**
 * Converts a manifest to a static pod. Source: pkg/kubelet/config common.go applyDefaults, tryDecodeSinglePod (which
 * also validates).
 */

import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import type { Pod } from '../../api/generated/core/v1.ts';
import { failuresOf } from '../../api/meta/field-error.ts';
import { fillAppArmorFields } from '../../api/podspec/annotations.ts';
import { apiReference } from '../../api/podspec/api-references.ts';
import { setPodDefaults } from '../../api/podspec/defaults.ts';
import {
  hostRootFields,
  hostRootRefusal,
  type ManifestSourceKind,
  mayUseHostRoot,
} from '../../api/podspec/host-root-image.ts';
import { validatePod, validatePodCreate } from '../../api/podspec/validate.ts';
import { pruneAndCheck } from '../../api/schema/decode.ts';
import { schemaOfType } from '../../api/schema/index.ts';
import type { NodeName } from '../../base/brand.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { typeOf } from '../volumes/types/index.ts';

const CONFIG_HASH = 'kubernetes.io/config.hash';
export const CONFIG_MIRROR = 'kubernetes.io/config.mirror';
const CONFIG_SEEN = 'kubernetes.io/config.seen';
export const CONFIG_SOURCE = 'kubernetes.io/config.source';

/** Priorities that admission in the API server would resolve. Source: scheduling.k8s.io system priority classes. */
const SYSTEM_PRIORITY: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
};

const MAX_ALIASES = 100;
const MAX_LIST_PODS = 1_000;

export interface StaticPodContext {
  readonly nodeName: NodeName;
  readonly kind: ManifestSourceKind;
  /** File or URL. Part of the pod's identity and of error messages. */
  readonly origin: string;
  readonly nowMs: number;
}

/** Throws `CodedError('static-pod')` with the origin. */
export function decodeStaticPod(content: string, context: StaticPodContext): Pod {
  return staticPodOf(parsedManifest(content, context), context);
}

/**
 * Decodes a Pod or a PodList. One invalid pod rejects the whole list, as upstream does, because a partial list would
 * end the other pods.
 */
export function decodeStaticPods(content: string, context: StaticPodContext): Pod[] {
  const manifest = parsedManifest(content, context);
  if (!('kind' in manifest && (manifest.kind === 'PodList' || manifest.kind === 'List')))
    return [staticPodOf(manifest, context)];
  const items: unknown = 'items' in manifest ? manifest.items : undefined;
  if (!Array.isArray(items)) throw refused(context, 'items: Required value');
  if (items.length > MAX_LIST_PODS) throw refused(context, `items: Too many: must have at most ${MAX_LIST_PODS} items`);
  return items.map((item: unknown) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item))
      throw refused(context, 'items: not a list of pods');
    // Items of a typed list may omit apiVersion and kind.
    return staticPodOf({ apiVersion: 'v1', kind: 'Pod', ...item }, context);
  });
}

function parsedManifest(content: string, context: StaticPodContext): object {
  let parsed: unknown;
  try {
    parsed = parse(content, { maxAliasCount: MAX_ALIASES, uniqueKeys: true, schema: 'core' });
  } catch (error) {
    throw refused(context, messageOf(error).split('\n')[0] ?? '');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw refused(context, 'the manifest is not an object');
  return parsed;
}

function staticPodOf(manifest: object, context: StaticPodContext): Pod {
  const pod = manifest as Pod;
  if (pod.kind !== 'Pod' || pod.apiVersion !== 'v1') throw refused(context, 'not a v1 Pod');
  const name = pod.metadata?.name;
  if (typeof name !== 'string' || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
    throw refused(context, 'metadata.name is missing or not a DNS subdomain name');
  }
  if (!Array.isArray(pod.spec?.containers) || pod.spec.containers.length === 0) {
    throw refused(context, 'spec.containers: Required value');
  }
  for (const container of pod.spec.containers) {
    if (typeof container?.name !== 'string' || container.name === '')
      throw refused(context, 'spec.containers[].name: Required value');
    if (typeof container.image !== 'string' || container.image === '')
      throw refused(context, `spec.containers[${container.name}].image: Required value`);
  }
  const dependency = apiDependency(pod);
  if (dependency !== undefined) throw refused(context, `a static pod may not reference ${dependency}`);
  const [reserved] = mayUseHostRoot(context.kind) ? [] : hostRootFields(pod);
  if (reserved !== undefined) throw refused(context, hostRootRefusal(reserved));
  return validated(applyDefaults(pod, context), context);
}

/** Returns the canonical form that the API server would store. Throws if the API server would reject the pod. */
function validated(pod: Pod, context: StaticPodContext): Pod {
  const schema = schemaOfType('io.k8s.api.core.v1.Pod');
  const [wrong] = schema === undefined ? [] : pruneAndCheck(schema, pod).typeErrors;
  if (wrong !== undefined) throw refused(context, wrong);
  setPodDefaults(pod);
  fillAppArmorFields(pod);
  const [error] = failuresOf(() => [...validatePod(pod), ...validatePodCreate(pod)]);
  if (error !== undefined) throw refused(context, `${error.field}: ${error.message}`);
  return pod;
}

function applyDefaults(pod: Pod, context: StaticPodContext): Pod {
  const metadata = pod.metadata ?? {};
  const uid =
    metadata.uid !== undefined && metadata.uid !== ''
      ? metadata.uid
      : createHash('md5')
          .update(`host:${context.nodeName}\n${context.kind}:${context.origin}\n${canonicalJson(pod)}`)
          .digest('hex');
  const spec = { ...pod.spec, containers: pod.spec?.containers ?? [], nodeName: context.nodeName };
  spec.tolerations = [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }];
  const priority = SYSTEM_PRIORITY[spec.priorityClassName ?? ''];
  if (priority !== undefined) spec.priority ??= priority;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadata,
      name: `${metadata.name}-${context.nodeName.toLowerCase()}`,
      namespace: metadata.namespace ?? 'default',
      uid,
      creationTimestamp: timestamp(context.nowMs),
      annotations: {
        ...metadata.annotations,
        [CONFIG_HASH]: uid,
        [CONFIG_SEEN]: new Date(context.nowMs).toISOString(),
        [CONFIG_SOURCE]: context.kind,
      },
    },
    spec,
    status: { phase: 'Pending' },
  };
}

/**
 * Reference to an object of the API. The API server rejects the mirror pod of a static pod with such a reference, so
 * the pod would run without being visible at the API.
 */
function apiDependency(pod: Pod): string | undefined {
  for (const volume of pod.spec?.volumes ?? []) {
    const object = typeOf(volume)?.apiObject?.(volume);
    if (object !== undefined) return object;
  }
  return apiReference(pod);
}

const refused = (context: StaticPodContext, why: string): CodedError =>
  new CodedError('static-pod', `static pod ${context.origin}: ${why}`);

export const isMirror = (pod: Pod): boolean =>
  pod.metadata?.annotations !== undefined && Object.hasOwn(pod.metadata.annotations, CONFIG_MIRROR);

export const fullName = (pod: Pod): string => `${pod.metadata?.name}_${pod.metadata?.namespace}`;
