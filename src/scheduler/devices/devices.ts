/**
 * DynamicResources plug-in. When a node is selected, the devices for the pod's claims are reserved in memory. The
 * claims are written before the pod is bound. Source: pkg/scheduler/framework/plugins/dynamicresources.
 */

import { classesByResource, EXTENDED_CLAIM_ANNOTATION } from '../../api/devices/extended-resources.ts';
import { slicesWithRules } from '../../api/devices/taint-rules.ts';
import type { Device, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '../../api/devices/types.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { matchesTerm } from '../../api/podspec/node-terms.ts';
import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import { ignore } from '../../base/errors.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { Informer } from '../../client/types.ts';
import { rigOfDevice } from '../../rigs/kinds/fixtures.ts';
import { RIG_GROUP, type Rig } from '../../rigs/kinds/rig-types.ts';
import { BindingWaits } from '../binding-waits.ts';
import { bindingState } from '../core/binding-conditions.ts';
import type { ClusterView } from '../core/cluster.ts';
import { AllocatedDevices } from '../core/devices/allocated-devices.ts';
import type { DeviceLister } from '../core/devices/device-lister.ts';
import type { Allocation } from '../core/devices/device-results.ts';
import { allocateDevices } from '../core/devices/devices.ts';
import { type ExtendedClaim, extendedClaimOn } from '../core/devices/extended-claims.ts';
import type { Consumed } from '../core/devices/shared-capacity.ts';
import { claimsOf } from '../core/filters/devices.ts';
import { type Rejection, rejectUnresolvable } from '../core/filters/filter.ts';
import type { NodeInfo } from '../core/node-info.ts';
import type { SchedulerDeps } from '../deps.ts';
import type { BindingPlugin } from '../plugins.ts';
import { ClaimWrites } from './claim-writes.ts';
import { DeviceSelectors } from './device-selectors.ts';

export interface DeviceSources {
  readonly claims: Informer<ResourceClaim>;
  readonly slices: Informer<ResourceSlice>;
  readonly classes: Informer<DeviceClass>;
  /** Undefined if the server does not serve DeviceTaintRules. */
  readonly rules: Informer<DeviceTaintRule> | undefined;
  /** Undefined if the server does not serve rigs. */
  readonly rigs: Informer<Rig> | undefined;
}

export class ClaimAllocator implements BindingPlugin, DeviceLister {
  readonly #writes: ClaimWrites;
  readonly #waits: BindingWaits;
  readonly #clock: Clock;
  readonly #timeoutOf: (pod: PodInfo) => number;
  readonly #sources: DeviceSources;
  readonly #selectors = new DeviceSelectors();
  /** Allocations that the informer does not show yet, by UID of the claim. */
  readonly #pending = new Map<string, { readonly pod: string; readonly allocation: Allocation }>();
  readonly #devices = new AllocatedDevices();
  readonly #random: Pick<RandomSource, 'uuid'>;
  readonly #unsubscribes: (() => void)[];
  #slices: Map<string, ResourceSlice[]> | undefined;
  #classes: ReadonlyMap<string, DeviceClass> | undefined;
  /** Claims for extended resources that are planned on the selected node, by UID of the pod. */
  readonly #extended = new Map<string, ExtendedClaim>();
  /** Claims for extended resources that were created for a pod that is not bound yet, by UID of the pod. */
  readonly #made = new Map<string, ResourceClaim>();
  /** Claims for extended resources that the informer shows, by UID of the pod. */
  readonly #shown = new Map<string, ResourceClaim>();

  /** `onChanged` is called if pods that were rejected because of their claims may be schedulable now. */
  constructor(
    deps: Pick<SchedulerDeps, 'client' | 'random' | 'clock' | 'recorder'> & {
      /** Returns the timeout for binding conditions in the profile of the pod. */
      readonly bindingTimeoutMs: (pod: PodInfo) => number;
    },
    sources: DeviceSources & { readonly pods: Informer<Pod> },
    onChanged: () => void,
  ) {
    this.#writes = new ClaimWrites(deps.client, () => deps.clock.nowMs());
    this.#waits = new BindingWaits(deps, sources);
    this.#clock = deps.clock;
    this.#timeoutOf = deps.bindingTimeoutMs;
    this.#random = deps.random;
    this.#sources = sources;
    const changed = (): void => {
      this.#slices = undefined;
      onChanged();
    };
    const classesChanged = (): void => {
      this.#classes = undefined;
      onChanged();
    };
    const seen = (claim: ResourceClaim): void => {
      const owner = extendedOwner(claim);
      if (owner !== undefined) this.#shown.set(owner, claim);
      this.#seen(claim);
      onChanged();
    };
    const left = (claim: ResourceClaim): void => {
      const owner = extendedOwner(claim);
      if (owner !== undefined && this.#shown.get(owner)?.metadata?.uid === claim.metadata?.uid)
        this.#shown.delete(owner);
      this.#seen({ metadata: claim.metadata ?? {} });
      onChanged();
    };
    this.#unsubscribes = [
      sources.claims.onChange({ added: seen, updated: seen, deleted: left }),
      sources.classes.onChange({ added: classesChanged, updated: classesChanged, deleted: classesChanged }),
      sources.slices.onChange({ added: changed, updated: changed, deleted: changed }),
      sources.rigs?.onChange({ added: onChanged, updated: onChanged, deleted: onChanged }) ?? (() => {}),
      sources.rules?.onChange({ added: changed, updated: changed, deleted: changed }) ?? (() => {}),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#waits.stop();
  }

  claim(namespace: string, name: string): ResourceClaim | undefined {
    return this.#sources.claims.get(`${namespace}/${name}`);
  }

  deviceClass(name: string): DeviceClass | undefined {
    return this.#sources.classes.get(name);
  }

  classOfResource(resource: string): DeviceClass | undefined {
    this.#classes ??= classesByResource(this.#sources.classes.list());
    return this.#classes.get(resource);
  }

  /**
   * Claim that an earlier attempt has created for the pod's extended resources. Claims of the current attempt do not
   * count.
   */
  extendedClaimOf(podUid: string): ResourceClaim | undefined {
    const claim = this.#shown.get(podUid);
    return claim?.metadata?.uid === this.#made.get(podUid)?.metadata?.uid ? undefined : claim;
  }

  hasFailedBinding(claim: ResourceClaim, timeoutMs: number): boolean {
    return bindingState(claim, this.#clock.nowMs(), timeoutMs).kind === 'failed';
  }

  slicesFor(node: string): readonly ResourceSlice[] {
    const { slices, rules } = this.#sources;
    this.#slices ??= Map.groupBy(
      slicesWithRules(slices.list(), rules?.list() ?? []),
      ({ spec }) => spec?.nodeName ?? '',
    );
    return [...(this.#slices.get(node) ?? []), ...(this.#slices.get('') ?? [])];
  }

  isAllocated(driver: string, pool: string, device: string): boolean {
    return this.#devices.isAllocated(driver, pool, device);
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
    if (typeof claims === 'string') return rejectUnresolvable('DynamicResources', claims);
    const open = claims.filter(({ status }) => status?.allocation === undefined);
    const extended = extendedClaimOn(pod, node.allocatable, this);
    const wanted = extended === undefined ? open : [...open, extended.claim];
    if (wanted.length === 0) return undefined;
    const allocations = allocateDevices(wanted, node, this);
    if (typeof allocations === 'string') return rejectUnresolvable('DynamicResources', allocations);
    for (const [index, claim] of wanted.entries()) {
      const uid = claim.metadata?.uid ?? unmadeUid(pod);
      this.#take(pod, uid, allocations[index] as Allocation);
    }
    if (extended !== undefined) this.#extended.set(pod.uid, extended);
    return undefined;
  }

  preBind(pod: PodInfo, node: Node): Promise<void> | undefined {
    const claims = this.#claimsOf(pod);
    const extended = this.#extended.get(pod.uid);
    if (claims.length === 0 && extended === undefined) return undefined;
    return this.#bind(pod, node, claims, extended);
  }

  unreserve(pod: PodInfo): void {
    for (const [uid, { pod: owner }] of this.#pending) {
      if (owner !== pod.uid) continue;
      this.#pending.delete(uid);
      const claim = this.#sources.claims.list().find(({ metadata }) => metadata?.uid === uid);
      this.#seen(claim ?? { metadata: { uid } });
    }
    this.#extended.delete(pod.uid);
    const made = this.#made.get(pod.uid) ?? this.#shown.get(pod.uid);
    this.#made.delete(pod.uid);
    if (made !== undefined)
      void this.#writes.deleteExtended(pod, made).catch(ignore('the garbage collector deletes the claim with its pod'));
    for (const claim of this.#claimsOf(pod))
      void this.#writes.release(pod, claim).catch(ignore('a reservation that is left is released when the pod ends'));
  }

  /**
   * Upstream's PostFilter: deallocates a claim whose devices keep the pod from every node, so that other devices can be
   * selected.
   */
  postFilter(pod: PodInfo, view: ClusterView): Promise<void> | undefined {
    const timeoutMs = this.#timeoutOf(pod);
    const stale = this.extendedClaimOf(pod.uid);
    if (stale !== undefined) return this.#writes.deleteExtended(pod, stale);
    const unavailable = this.#claimsOf(pod).find((claim) => {
      const { allocation, reservedFor = [] } = claim.status ?? {};
      if (allocation === undefined || reservedFor.some(({ uid }) => uid !== pod.uid)) return false;
      const terms = allocation.nodeSelector?.nodeSelectorTerms;
      const isElsewhere = view.nodes.some(({ node }) => terms?.some((term) => matchesTerm(term, node)) === false);
      return isElsewhere || this.hasFailedBinding(claim, timeoutMs);
    });
    return unavailable === undefined ? undefined : this.#writes.deallocate(unavailable);
  }

  async #bind(
    pod: PodInfo,
    node: Node,
    claims: readonly ResourceClaim[],
    extended: ExtendedClaim | undefined,
  ): Promise<void> {
    const written: ResourceClaim[] = [];
    for (const claim of claims) {
      const chosen = this.#pending.get(claim.metadata?.uid ?? '')?.allocation;
      written.push(await this.#writes.reserve(pod, claim, chosen));
    }
    if (extended !== undefined) written.push(await this.#bindExtended(pod, extended));
    await this.#waits.ready(pod, node, written, this.#timeoutOf(pod));
    this.#extended.delete(pod.uid);
    this.#made.delete(pod.uid);
  }

  async #bindExtended(pod: PodInfo, { claim, mappings }: ExtendedClaim): Promise<ResourceClaim> {
    const unmade = unmadeUid(pod);
    const chosen = this.#pending.get(unmade)?.allocation;
    if (chosen === undefined) throw new Error('extended resource claim lost its allocation');
    const created = await this.#writes.create(claim);
    this.#made.set(pod.uid, created);
    this.#take(pod, created.metadata?.uid ?? '', chosen);
    this.#pending.delete(unmade);
    this.#devices.set(unmade, undefined);
    const reserved = await this.#writes.reserve(pod, created, chosen);
    await this.#writes.recordExtended(pod, reserved, mappings);
    return reserved;
  }

  #take(pod: PodInfo, uid: string, allocation: Allocation): void {
    this.#pending.set(uid, { pod: pod.uid, allocation });
    this.#devices.set(uid, allocation);
  }

  /** Claims of the pod that exist; empty if one does not exist yet. */
  #claimsOf(pod: PodInfo): readonly ResourceClaim[] {
    const claims = claimsOf(pod, {
      claim: (namespace, name) => this.claim(namespace, name),
      deviceClass: (name) => this.deviceClass(name),
      isPending: () => false,
    });
    return typeof claims === 'string' ? [] : claims;
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

/** UID of the pod for whose extended resources the claim was created. */
const extendedOwner = ({ metadata }: ResourceClaim): string | undefined =>
  metadata?.annotations?.[EXTENDED_CLAIM_ANNOTATION] === 'true'
    ? metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'Pod')?.uid
    : undefined;

/** Placeholder for the UID of a claim that has not been created yet. */
const unmadeUid = ({ uid }: PodInfo): string => `extended/${uid}`;
