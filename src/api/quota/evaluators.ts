/**
 * Quota usage of each kind of object, and the changes that can increase it. Source: pkg/quota/v1/evaluator/core,
 * k8s.io/apiserver/pkg/quota/v1/generic.
 */

import { compareQuantity, type Quantity, quantityOf, tryParseQuantity } from '../../base/quantity.ts';
import type { PersistentVolumeClaim, Pod, Service } from '../generated/core/v1.ts';
import type { KubeObject } from '../meta/object.ts';
import type { Amounts } from './amounts.ts';
import { podConstraint, podCounts, podUsage } from './pods.ts';
import { claimMatchesScope, isTerminating, podMatchesScope, type ScopeSelector } from './scopes.ts';

export interface GroupResource {
  readonly group: string;
  readonly plural: string;
}

interface Change {
  readonly operation: string;
  readonly subresource: string;
  readonly object: KubeObject;
  readonly old: KubeObject | undefined;
}

export interface Evaluator {
  /** Reports whether the change can increase usage. */
  handles(change: Change): boolean;
  /** Reports whether a quota resource of this name counts objects of this kind. */
  counts(name: string): boolean;
  matchesScope(object: KubeObject, selector: ScopeSelector): boolean;
  /** Returns the reason why the object violates a quota of the `required` resources; undefined if it does not. */
  constraint(required: readonly string[], object: KubeObject): string | undefined;
  usage(object: KubeObject, nowMs: number): Amounts;
}

const NANO = 1_000_000_000n;
const CLASS_SUFFIX = '.storageclass.storage.k8s.io/';
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const SERVICE_NAMES = new Set(['count/services', 'services', 'services.nodeports', 'services.loadbalancers']);
const CLAIM_NAMES = ['persistentvolumeclaims', 'requests.storage'];
/** Kinds that are counted under their plural, as before `count/…` existed. */
const LEGACY_NAMES = new Set(['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']);

const none = (): undefined => undefined;
const one = quantityOf(1);

/** Quota resource of a kind: `count/deployments.apps`, `count/pods`. */
export const countName = ({ group, plural }: GroupResource): string =>
  group === '' ? `count/${plural}` : `count/${plural}.${group}`;

const pods: Evaluator = {
  handles({ operation, subresource, object, old }) {
    if (subresource === 'resize') return operation === 'UPDATE';
    if (subresource !== '') return false;
    if (operation === 'UPDATE') return old !== undefined && isTerminating(object as Pod) !== isTerminating(old as Pod);
    return operation === 'CREATE';
  },
  counts: podCounts,
  matchesScope: (object, selector) => podMatchesScope(object as Pod, selector),
  constraint: (required, object) => podConstraint(required, object as Pod),
  usage: (object, nowMs) => podUsage(object as Pod, nowMs),
};

const writes = ({ operation, subresource }: Change): boolean =>
  subresource === '' && (operation === 'CREATE' || operation === 'UPDATE');

const services: Evaluator = {
  handles: writes,
  counts: (name) => SERVICE_NAMES.has(name),
  matchesScope: () => false,
  constraint: none,
  usage(object) {
    const { type, ports = [], allocateLoadBalancerNodePorts } = (object as Service).spec ?? {};
    const usage = new Map<string, Quantity>([
      ['count/services', one],
      ['services', one],
      ['services.loadbalancers', quantityOf(type === 'LoadBalancer' ? 1 : 0)],
    ]);
    // Node ports may not be allocated yet, so the number of node ports that the service requests is counted.
    let nodePorts = type === 'NodePort' || type === 'LoadBalancer' ? ports.length : 0;
    if (type === 'LoadBalancer' && allocateLoadBalancerNodePorts === false) {
      nodePorts = ports.filter(({ nodePort = 0 }) => nodePort !== 0).length;
    }
    return usage.set('services.nodeports', quantityOf(nodePorts));
  },
};

const claims: Evaluator = {
  handles: writes,
  counts: (name) =>
    name === 'count/persistentvolumeclaims' ||
    CLAIM_NAMES.includes(name) ||
    CLAIM_NAMES.some((each) => name.endsWith(`${CLASS_SUFFIX}${each}`)),
  matchesScope: (object, selector) => claimMatchesScope(object as PersistentVolumeClaim, selector),
  constraint: none,
  usage(object) {
    const claim = object as PersistentVolumeClaim;
    const usage = new Map<string, Quantity>([
      ['count/persistentvolumeclaims', one],
      ['persistentvolumeclaims', one],
    ]);
    const storage = claimStorage(claim);
    if (storage !== undefined) usage.set('requests.storage', storage);
    const name = claim.metadata?.annotations?.[CLASS_ANNOTATION] ?? claim.spec?.storageClassName ?? '';
    if (name !== '') {
      usage.set(`${name}${CLASS_SUFFIX}persistentvolumeclaims`, one);
      if (storage !== undefined) usage.set(`${name}${CLASS_SUFFIX}requests.storage`, storage);
    }
    return usage;
  },
};

/** Requested storage in whole bytes. After a failed expansion it is the allocated amount if that is larger. */
function claimStorage({ spec, status }: PersistentVolumeClaim): Quantity | undefined {
  const requested = tryParseQuantity(spec?.resources?.requests?.['storage']);
  if (requested === undefined) return undefined;
  const { allocatedResources } = (status ?? {}) as { readonly allocatedResources?: Readonly<Record<string, string>> };
  const allocated = tryParseQuantity(allocatedResources?.['storage']);
  const larger = allocated !== undefined && compareQuantity(allocated, requested) > 0 ? allocated : requested;
  const rest = larger.nanos % NANO;
  return rest === 0n ? larger : { ...larger, nanos: larger.nanos - rest + NANO };
}

const DEVICES_SUFFIX = '.deviceclass.resource.k8s.io/devices';
const DEVICE_CLAIMS = { group: 'resource.k8s.io', plural: 'resourceclaims' };
const DEVICE_CLAIMS_COUNT = countName(DEVICE_CLAIMS);
/** Maximum number of devices of one claim. */
const MAX_DEVICES = 32;

interface CountedDevices {
  readonly deviceClassName?: string;
  readonly allocationMode?: string;
  readonly count?: number;
}

interface DeviceRequest {
  readonly exactly?: CountedDevices;
  readonly firstAvailable?: readonly CountedDevices[];
}

function devicesOf({ allocationMode, count = 1 }: CountedDevices): number {
  if (allocationMode === 'All') return MAX_DEVICES;
  return allocationMode === 'ExactCount' ? count : 0;
}

/** Counts resource claims and, for each device class, the maximum number of devices that the claims can get. */
const deviceClaims: Evaluator = {
  handles: writes,
  counts: (name) => name === DEVICE_CLAIMS_COUNT || name.endsWith(DEVICES_SUFFIX),
  matchesScope: () => false,
  constraint: none,
  usage(object) {
    const { spec } = object as {
      readonly spec?: { readonly devices?: { readonly requests?: readonly DeviceRequest[] } };
    };
    const totals = new Map<string, number>();
    for (const { exactly, firstAvailable = [] } of spec?.devices?.requests ?? []) {
      // One of several alternatives is allocated, so the largest request per class counts.
      const most = new Map<string, number>();
      for (const devices of exactly === undefined ? firstAvailable : [exactly]) {
        const name = devices.deviceClassName ?? '';
        most.set(name, Math.max(most.get(name) ?? 0, devicesOf(devices)));
      }
      for (const [name, devices] of most) totals.set(name, (totals.get(name) ?? 0) + devices);
    }
    const usage = new Map<string, Quantity>([[DEVICE_CLAIMS_COUNT, one]]);
    for (const [name, devices] of totals) usage.set(`${name}${DEVICES_SUFFIX}`, quantityOf(devices));
    return usage;
  },
};

/** Evaluator that counts the objects of any kind, including custom resources. */
function counting(resource: GroupResource): Evaluator {
  const names = [
    countName(resource),
    ...(resource.group === '' && LEGACY_NAMES.has(resource.plural) ? [resource.plural] : []),
  ];
  return {
    handles: ({ operation, subresource }) => operation === 'CREATE' && subresource === '',
    counts: (name) => names.includes(name),
    matchesScope: () => false,
    constraint: none,
    usage: () => new Map(names.map((name) => [name, one])),
  };
}

/** Evaluator of a kind. Undefined for kinds that are never counted: events and kinds without storage. */
export function evaluatorOf(resource: GroupResource): Evaluator | undefined {
  const { group, plural } = resource;
  if (plural === 'events' && (group === '' || group === 'events.k8s.io')) return undefined;
  if (group === '') {
    if (plural === 'pods') return pods;
    if (plural === 'services') return services;
    if (plural === 'persistentvolumeclaims') return claims;
  }
  if (group === DEVICE_CLAIMS.group && plural === DEVICE_CLAIMS.plural) return deviceClaims;
  return counting(resource);
}

/** Whether the usage of an object of the kind depends on more than its metadata. */
export function needsContent({ group, plural }: GroupResource): boolean {
  if (group === '') return ['pods', 'services', 'persistentvolumeclaims'].includes(plural);
  return group === DEVICE_CLAIMS.group && plural === DEVICE_CLAIMS.plural;
}

/** The kind whose objects a quota resource of this name counts; undefined if the resource counts no objects. */
export function countedBy(name: string): GroupResource | undefined {
  if (name.startsWith('count/')) {
    const [, plural = '', group = ''] = /^count\/([^.]+)(?:\.(.+))?$/.exec(name) ?? [];
    return plural === '' ? undefined : { group, plural };
  }
  if (LEGACY_NAMES.has(name)) return { group: '', plural: name };
  if (deviceClaims.counts(name)) return DEVICE_CLAIMS;
  if (services.counts(name)) return { group: '', plural: 'services' };
  if (claims.counts(name)) return { group: '', plural: 'persistentvolumeclaims' };
  return podCounts(name) ? { group: '', plural: 'pods' } : undefined;
}
