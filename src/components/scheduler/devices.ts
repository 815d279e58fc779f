/**
 * DynamicResources around a binding: the devices of a pod's claims are taken in memory when its node is chosen, and the
 * claims are written before the pod is bound. Source: pkg/scheduler/framework/plugins/dynamicresources.
 */
import type { Node } from 'kubernetes-types/core/v1';
import { slicesWithRules } from '../../api/devices/taint-rules.ts';
import type { Device, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '../../api/devices/types.ts';
import { resources } from '../../api/resources.ts';
import { rigOfDevice } from '../../api/rigs/fixtures.ts';
import { RIG_GROUP, type Rig } from '../../api/rigs/types.ts';
import type { RandomSource } from '../../base/clock.ts';
import type { ApiClient, Informer } from '../../client/types.ts';
import { AllocatedDevices } from '../../core/scheduling/allocated-devices.ts';
import type { ClusterView } from '../../core/scheduling/cluster.ts';
import type { DeviceLister } from '../../core/scheduling/device-lister.ts';
import type { Allocation } from '../../core/scheduling/device-results.ts';
import { allocateDevices } from '../../core/scheduling/devices.ts';
import { claimsOf } from '../../core/scheduling/filters/devices.ts';
import { type Rejection, reject } from '../../core/scheduling/filters/filter.ts';
import type { NodeInfo } from '../../core/scheduling/node-info.ts';
import type { PodInfo } from '../../core/scheduling/pod-info.ts';
import type { Consumed } from '../../core/scheduling/shared-capacity.ts';
import { DeviceSelectors } from './device-selectors.ts';
import type { BindingPlugin } from './plugins.ts';

/** Keeps an allocated claim from being deleted under its pods; the resourceclaim controller removes it. */
const FINALIZER = 'resource.kubernetes.io/delete-protection';

export interface DeviceSources {
  readonly claims: Informer<ResourceClaim>;
  readonly slices: Informer<ResourceSlice>;
  readonly classes: Informer<DeviceClass>;
  /** Undefined: the server does not serve the kind. */
  readonly rules: Informer<DeviceTaintRule> | undefined;
  /** Undefined: the server does not serve the kind. */
  readonly rigs: Informer<Rig> | undefined;
}

export class ClaimAllocator implements BindingPlugin, DeviceLister {
  readonly #client: ApiClient;
  readonly #sources: DeviceSources;
  readonly #selectors = new DeviceSelectors();
  /** By claim UID: what was chosen and does not stand in the informer yet. */
  readonly #pending = new Map<string, { readonly pod: string; readonly allocation: Allocation }>();
  readonly #devices = new AllocatedDevices();
  readonly #random: Pick<RandomSource, 'uuid'>;
  readonly #unsubscribes: (() => void)[];
  #slices: Map<string, ResourceSlice[]> | undefined;

  /** `onChanged`: a pod that was rejected for its claims may be placed now. */
  constructor(
    { client, random }: { readonly client: ApiClient; readonly random: Pick<RandomSource, 'uuid'> },
    sources: DeviceSources,
    onChanged: () => void,
  ) {
    this.#client = client;
    this.#random = random;
    this.#sources = sources;
    const changed = (): void => {
      this.#slices = undefined;
      onChanged();
    };
    const seen = (claim: ResourceClaim): void => {
      this.#seen(claim);
      onChanged();
    };
    this.#unsubscribes = [
      sources.claims.onChange({
        added: seen,
        updated: seen,
        deleted: ({ metadata = {} }) => seen({ metadata }),
      }),
      sources.classes.onChange({ added: onChanged, updated: onChanged }),
      sources.slices.onChange({ added: changed, updated: changed, deleted: changed }),
      sources.rigs?.onChange({ added: onChanged, updated: onChanged, deleted: onChanged }) ?? (() => {}),
      sources.rules?.onChange({ added: changed, updated: changed, deleted: changed }) ?? (() => {}),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  claim(namespace: string, name: string): ResourceClaim | undefined {
    return this.#sources.claims.get(`${namespace}/${name}`);
  }

  deviceClass(name: string): DeviceClass | undefined {
    return this.#sources.classes.get(name);
  }

  slicesFor(node: string): readonly ResourceSlice[] {
    const { slices, rules } = this.#sources;
    this.#slices ??= Map.groupBy(
      slicesWithRules(slices.list(), rules?.list() ?? []),
      ({ spec }) => spec?.nodeName ?? '',
    );
    return [...(this.#slices.get(node) ?? []), ...(this.#slices.get('') ?? [])];
  }

  isTaken(driver: string, pool: string, device: string): boolean {
    return this.#devices.isTaken(driver, pool, device);
  }

  consumed(driver: string, pool: string, device: string): Consumed | undefined {
    return this.#devices.consumed(driver, pool, device);
  }

  withheld(driver: string, device: string): string | undefined {
    const rig = driver === RIG_GROUP ? rigOfDevice(this.#sources.rigs?.list() ?? [], device) : undefined;
    return rig === undefined ? undefined : `fixture ${device} belongs to rig ${rig}, which a RigClaim grants`;
  }

  newShareId(): string {
    return this.#random.uuid();
  }

  isPending(claim: ResourceClaim): boolean {
    return this.#pending.has(claim.metadata?.uid ?? '');
  }

  meets(expression: string, driver: string, device: Device): boolean {
    return this.#selectors.meets(expression, driver, device);
  }

  reserve(pod: PodInfo, node: NodeInfo, _view: ClusterView): Rejection | undefined {
    const claims = claimsOf(pod, this);
    if (typeof claims === 'string') return reject('DynamicResources', claims, true);
    const open = claims.filter(({ status }) => status?.allocation === undefined);
    if (open.length === 0) return undefined;
    const allocations = allocateDevices(open, node, this);
    if (typeof allocations === 'string') return reject('DynamicResources', allocations, true);
    for (const [index, claim] of open.entries()) {
      const uid = claim.metadata?.uid ?? '';
      const allocation = allocations[index] as Allocation;
      this.#pending.set(uid, { pod: pod.uid, allocation });
      this.#devices.set(uid, allocation);
    }
    return undefined;
  }

  preBind(pod: PodInfo, _node: Node): Promise<void> | undefined {
    const claims = claimsOfPod(pod, this);
    return claims.length === 0 ? undefined : this.#write(pod, claims);
  }

  unreserve(pod: PodInfo): void {
    for (const [uid, { pod: owner }] of this.#pending) {
      if (owner !== pod.uid) continue;
      this.#pending.delete(uid);
      const claim = this.#sources.claims.list().find(({ metadata }) => metadata?.uid === uid);
      this.#seen(claim ?? { metadata: { uid } });
    }
    for (const claim of claimsOfPod(pod, this)) void this.#release(pod, claim).catch(() => {});
  }

  async #write(pod: PodInfo, claims: readonly ResourceClaim[]): Promise<void> {
    const client = this.#client.resource(resources.resourceClaims);
    for (const known of claims) {
      const { name = '', namespace = '', uid = '' } = known.metadata ?? {};
      const pending = this.#pending.get(uid);
      let claim = await client.get(name, namespace);
      if (claim.metadata?.uid !== uid) throw new Error(`resourceclaim "${name}" was replaced`);
      if (claim.status?.allocation !== undefined && pending !== undefined && known.status?.allocation === undefined)
        throw new Error(`resourceclaim "${name}" was allocated by another scheduler`);
      const allocation = claim.status?.allocation ?? pending?.allocation;
      if (allocation === undefined) throw new Error(`resourceclaim "${name}" lost its allocation`);
      const finalizers = claim.metadata?.finalizers ?? [];
      if (!finalizers.includes(FINALIZER))
        claim = await client.update({
          ...claim,
          metadata: { ...claim.metadata, finalizers: [...finalizers, FINALIZER] },
        });
      const reservedFor = claim.status?.reservedFor ?? [];
      if (claim.status?.allocation !== undefined && reservedFor.some((each) => each.uid === pod.uid)) continue;
      const consumer = { resource: 'pods', name: pod.pod.metadata?.name ?? '', uid: pod.uid };
      const status = { ...claim.status, allocation, reservedFor: [...reservedFor, consumer] };
      await client.update({ ...claim, status }, { subresource: 'status' });
    }
  }

  /** What preBind may have written for a pod that is not bound. */
  async #release(pod: PodInfo, claim: ResourceClaim): Promise<void> {
    const client = this.#client.resource(resources.resourceClaims);
    const { name = '', namespace } = claim.metadata ?? {};
    const now = await client.get(name, namespace);
    const reservedFor = (now.status?.reservedFor ?? []).filter((each) => each.uid !== pod.uid);
    if (reservedFor.length === (now.status?.reservedFor ?? []).length) return;
    await client.update({ ...now, status: { ...now.status, reservedFor } }, { subresource: 'status' });
  }

  #seen(claim: ResourceClaim): void {
    const uid = claim.metadata?.uid ?? '';
    const { allocation } = claim.status ?? {};
    const pending = this.#pending.get(uid);
    if (allocation === undefined && pending !== undefined && claim.spec !== undefined) return;
    this.#pending.delete(uid);
    this.#devices.set(uid, allocation);
  }
}

/** Those that are there, whatever keeps the pod from being placed. */
function claimsOfPod(pod: PodInfo, lister: DeviceLister): readonly ResourceClaim[] {
  const claims = claimsOf(pod, { ...asLister(lister), isPending: () => false });
  return typeof claims === 'string' ? [] : claims;
}

const asLister = (lister: DeviceLister): DeviceLister => ({
  claim: (namespace, name) => lister.claim(namespace, name),
  deviceClass: (name) => lister.deviceClass(name),
  slicesFor: (node) => lister.slicesFor(node),
  isTaken: (driver, pool, device) => lister.isTaken(driver, pool, device),
  consumed: (driver, pool, device) => lister.consumed(driver, pool, device),
  withheld: (driver, device) => lister.withheld(driver, device),
  newShareId: () => lister.newShareId(),
  isPending: (claim) => lister.isPending(claim),
  meets: (expression, driver, device) => lister.meets(expression, driver, device),
});
