/**
 * Device claims of this node's pods. Drivers prepare them before a container starts and unprepare them when the last
 * pod that uses them has ended. Source: pkg/kubelet/cm/dra, KEP-4381.
 */

import { extendedClaimStatus } from '../../api/devices/extended-resources.ts';
import { claimNameOf, podClaims } from '../../api/devices/pod-claims.ts';
import type { AllocationResult, ResourceClaim } from '../../api/devices/types.ts';
import type { Container, ResourceClaim as ContainerClaim, Pod } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { Turns } from '../../base/concurrency/keyed-turns.ts';
import { type Decoded, decodeJson, list, object, oneOf, optional, own, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/types.ts';
import { cdiEdits } from '../core/pod-plan/cdi.ts';
import { type DeviceEdits, type DynamicResource, joinEdits, NO_EDITS } from '../core/pod-plan/devices.ts';
import type { DraPlugins } from './dra-plugins.ts';
import type { CdiFiles, ClaimReference, DraPluginConnection } from './port.ts';
import { isCdiName } from './validate-plugin.ts';

const MAX_PREPARED = 1024;

/** Driver that is part of this node's kubelet. */
export interface OwnDriver {
  /**
   * Returns the edits that give a device to a container. Throws an Error when the device does not exist or is in use.
   */
  prepare(claim: ClaimReference, result: AllocationResult): DeviceEdits;
  unprepare(claim: ClaimReference): void;
}

const PREPARED = object({
  request: text,
  driver: text,
  pool: text,
  device: text,
  cdiDevices: list(text),
  shareId: optional(text),
});
type Prepared = Decoded<typeof PREPARED>;

const STATE = object({
  claim: object({ namespace: text, name: text, uid: own<Uid>(text) }),
  drivers: list(text),
  devices: list(PREPARED),
  pods: list(own<Uid>(text)),
});
type ClaimState = Omit<Decoded<typeof STATE>, 'pods'> & { readonly pods: Uid[] };

const CHECKPOINT = object({ version: oneOf(1), claims: list(STATE) });

export interface ClaimManagerOptions {
  readonly plugins: Pick<DraPlugins, 'plugin'>;
  readonly drivers: ReadonlyMap<string, OwnDriver>;
  readonly cdi: CdiFiles;
  readonly checkpoint: { read(): Promise<string | undefined>; write(content: string): Promise<void> };
  readonly log: Log;
}

export class ClaimManager {
  readonly #options: ClaimManagerOptions;
  readonly #states = new Map<Uid, ClaimState>();
  /** Edits returned by this node's own drivers, by claim and device. */
  readonly #own = new Map<string, DeviceEdits>();
  #client: ApiClient | undefined;
  /** Serializes the work on a claim. A driver that hangs delays only its own claims. */
  readonly #turns = new Turns();
  readonly #writes = new Turns();

  constructor(options: ClaimManagerOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  async start(): Promise<void> {
    const { checkpoint, log } = this.#options;
    try {
      const content = await checkpoint.read();
      if (content === undefined) return;
      const { claims } = decodeJson(CHECKPOINT, content, 'claim checkpoint');
      for (const state of claims) this.#states.set(state.claim.uid, { ...state, pods: [...state.pods] });
    } catch (error) {
      log.error('prepared claims lost: checkpoint not read', { error: messageOf(error) });
    }
  }

  podsOf(claimUid: Uid): readonly Uid[] {
    return this.#states.get(claimUid)?.pods ?? [];
  }

  /** Edits that the claims of a container require. Prepares claims first. Rejects when a claim cannot be prepared. */
  async editsFor(pod: Pod, container: Container): Promise<DeviceEdits> {
    const names = claimNamesOf(pod);
    if (names.size === 0) return NO_EDITS;
    const states = new Map<string, ClaimState>();
    for (const [entry, name] of names) states.set(entry, await this.#prepared(pod, name));
    return this.#editsOf(states, claimsOf(pod, container));
  }

  heldBy(pod: Pod, container: Container): DynamicResource[] {
    const names = claimNamesOf(pod);
    return claimsOf(pod, container).flatMap(({ name, request }) => {
      const claimName = names.get(name);
      const state = [...this.#states.values()].find(
        (each) => each.claim.name === claimName && each.claim.namespace === pod.metadata?.namespace,
      );
      return (state?.devices ?? [])
        .filter((each) => isRequested(each, request))
        .map(({ request: _, ...device }) => ({
          ...device,
          claimName: claimName ?? '',
          claimNamespace: pod.metadata?.namespace ?? '',
        }));
    });
  }

  /** Handles an ended pod: unprepares claims that no other pod of this node uses. Never rejects. */
  async release(podUid: Uid): Promise<void> {
    const held = [...this.#states.values()].filter(({ pods }) => pods.includes(podUid));
    await Promise.all(held.map(({ claim }) => this.#releaseClaim(claim, podUid)));
  }

  async retain(podUids: ReadonlySet<Uid>): Promise<void> {
    const gone = new Set([...this.#states.values()].flatMap(({ pods }) => pods).filter((uid) => !podUids.has(uid)));
    await Promise.all([...gone].map((uid) => this.release(uid)));
    // Also retry claims whose driver was not registered when their last pod ended.
    const unused = [...this.#states.values()].filter(({ pods }) => pods.length === 0);
    await Promise.all(unused.map(({ claim }) => this.#releaseClaim(claim)));
  }

  /** Unprepares the claim if no pod of this node uses it, apart from `podUid`. Never rejects. */
  async #releaseClaim({ uid, name }: ClaimReference, podUid?: Uid): Promise<void> {
    const release = async (): Promise<void> => {
      const state = this.#states.get(uid);
      if (state === undefined) return;
      if (podUid !== undefined && state.pods.includes(podUid)) state.pods.splice(state.pods.indexOf(podUid), 1);
      if (state.pods.length === 0) await this.#unprepare(state);
    };
    await this.#turns
      .inTurn(uid, release)
      .catch((error: unknown) =>
        this.#options.log.warn('claim not unprepared', { claim: name, error: messageOf(error) }),
      );
  }

  async #editsOf(states: ReadonlyMap<string, ClaimState>, wanted: ReturnType<typeof claimsOf>): Promise<DeviceEdits> {
    const edits: DeviceEdits[] = [];
    for (const { name, request } of wanted) {
      const state = states.get(name);
      for (const device of state?.devices.filter((each) => isRequested(each, request)) ?? []) {
        const own = this.#own.get(keyOf(toUid(state?.claim.uid), device));
        if (own !== undefined) edits.push(own);
        if (device.cdiDevices.length === 0) continue;
        const specs = await this.#options.cdi.read();
        edits.push(
          cdiEdits(
            specs.map(({ content }) => content),
            device.cdiDevices,
          ),
        );
      }
    }
    return joinEdits(edits);
  }

  async #prepared(pod: Pod, name: string): Promise<ClaimState> {
    const namespace = pod.metadata?.namespace ?? '';
    const podUid = toUid(pod.metadata?.uid);
    if (this.#client === undefined) throw new Error(`resourceclaim "${name}": the API server is not available yet`);
    const claim: ResourceClaim = await this.#client.resource(resources.resourceClaims).get(name, namespace);
    const reference = { namespace, name, uid: toUid(claim.metadata?.uid) };
    const { allocation, reservedFor = [] } = claim.status ?? {};
    if (allocation === undefined) throw new Error(`resourceclaim "${name}" is not allocated`);
    if (!reservedFor.some(({ uid }) => uid === podUid))
      throw new Error(
        `pod ${pod.metadata?.name}(${podUid}) is not allowed to use ResourceClaim ${name}(${reference.uid})`,
      );
    const results = allocation.devices?.results ?? [];
    return this.#turns.inTurn(reference.uid, () => this.#prepareClaim(podUid, reference, results));
  }

  /** Must run in the claim's turn. */
  async #prepareClaim(
    podUid: Uid,
    reference: ClaimReference,
    results: readonly AllocationResult[],
  ): Promise<ClaimState> {
    const known = this.#states.get(reference.uid);
    const complete = known?.devices.every(
      (each) => !this.#options.drivers.has(each.driver) || this.#own.has(keyOf(reference.uid, each)),
    );
    if (known !== undefined && complete === true) {
      if (!known.pods.includes(podUid)) known.pods.push(podUid);
      return known;
    }
    if (this.#states.size >= MAX_PREPARED) throw new Error(`${MAX_PREPARED} claims are prepared on this node already`);
    const drivers = [...new Set(results.map(({ driver = '' }) => driver))];
    const devices: Prepared[] = [];
    for (const driver of drivers) {
      const ofDriver = results.filter((each) => each.driver === driver);
      devices.push(...(await this.#prepare(driver, reference, ofDriver)));
    }
    const pods = [...new Set([...(known?.pods ?? []), podUid])];
    const state: ClaimState = { claim: reference, drivers, devices, pods };
    this.#states.set(reference.uid, state);
    this.#options.log.info('claim prepared', { claim: `${reference.namespace}/${reference.name}`, drivers });
    await this.#write();
    return state;
  }

  async #prepare(driver: string, claim: ClaimReference, results: readonly AllocationResult[]): Promise<Prepared[]> {
    const own = this.#options.drivers.get(driver);
    if (own !== undefined) {
      return results.map((result) => {
        const prepared = { ...namesOf(result), driver, cdiDevices: [] };
        this.#own.set(keyOf(claim.uid, prepared), own.prepare(claim, result));
        return prepared;
      });
    }
    const listed = await this.#plugin(driver).prepare(claim);
    return listed.flatMap(({ requests, pool, device, cdiDevices, shareId }) => {
      const wrong = cdiDevices.find((name) => !isCdiName(name));
      if (wrong !== undefined)
        throw new Error(`driver ${driver}: CDI device ${JSON.stringify(wrong.slice(0, 64))} is not a qualified name`);
      const known = results.some(
        (each) => each.pool === pool && each.device === device && (shareId ?? each.shareID) === each.shareID,
      );
      if (!known) throw new Error(`driver ${driver}: device ${pool}/${device} was not allocated to the claim`);
      const names = requests.length === 0 ? [''] : requests;
      const share = shareId === undefined ? {} : { shareId };
      return names.map((request) => ({ request, driver, pool, device, cdiDevices, ...share }));
    });
  }

  #plugin(driver: string): DraPluginConnection {
    const plugin = this.#options.plugins.plugin(driver);
    if (plugin === undefined) throw new Error(`DRA driver ${driver} is not registered`);
    return plugin;
  }

  async #unprepare(state: ClaimState): Promise<void> {
    const { log, drivers } = this.#options;
    try {
      for (const driver of state.drivers) {
        const own = drivers.get(driver);
        if (own !== undefined) own.unprepare(state.claim);
        else await this.#plugin(driver).unprepare(state.claim);
      }
    } catch (error) {
      log.warn('claim not unprepared; retrying', { claim: state.claim.name, error: messageOf(error) });
      return;
    }
    for (const device of state.devices) this.#own.delete(keyOf(state.claim.uid, device));
    this.#states.delete(state.claim.uid);
    await this.#write();
  }

  #write(): Promise<void> {
    return this.#writes.inTurn('checkpoint', () =>
      this.#options.checkpoint.write(`${JSON.stringify({ version: 1, claims: [...this.#states.values()] })}\n`),
    );
  }
}

const keyOf = (claimUid: Uid, { driver, pool, device }: Omit<Prepared, 'request' | 'cdiDevices'>): string =>
  `${claimUid}/${driver}/${pool}/${device}`;

const namesOf = ({
  request = '',
  pool = '',
  device = '',
}: AllocationResult): Pick<Prepared, 'request' | 'pool' | 'device'> => ({
  request,
  pool,
  device,
});

/** The allocation names a request of `firstAvailable` as `request/subrequest`. */
const isRequested = ({ request }: Prepared, wanted: string | undefined): boolean =>
  wanted === undefined || wanted === '' || request === '' || request === wanted || request.startsWith(`${wanted}/`);

/**
 * Key, instead of an entry name, of the claim for the pod's extended resources. Entries in the pod spec never have an
 * empty name.
 */
const EXTENDED = '';

/**
 * Names of the pod's ResourceClaims by entry of `spec.resourceClaims`. An entry whose template needed no claim is
 * absent.
 */
function claimNamesOf(pod: Pod): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const claim of podClaims(pod)) {
    const name = claimNameOf(pod, claim);
    if (name !== undefined) names.set(claim.name, name);
  }
  const extended = extendedClaimStatus(pod);
  if (extended !== undefined) names.set(EXTENDED, extended.resourceClaimName);
  return names;
}

/** Claims that the container references, including the claim for its extended resources. */
function claimsOf(pod: Pod, { name: containerName, resources: given }: Container): readonly ContainerClaim[] {
  const own = given?.claims ?? [];
  const mapped = extendedClaimStatus(pod)?.requestMappings ?? [];
  const extended = mapped
    .filter((each) => each.containerName === containerName && Object.hasOwn(given?.requests ?? {}, each.resourceName))
    .map(({ requestName }) => ({ name: EXTENDED, request: requestName }));
  return extended.length === 0 ? own : [...own, ...extended];
}
