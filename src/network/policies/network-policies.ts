/**
 * Enforces network policies on one node: converts policies, namespaces and pods of the cluster to a table of the packet
 * filter. Pods and namespaces are watched only after the first policy exists, so clusters without policies have no
 * cost. Source: networking.k8s.io/v1, "Network Policies" of the Kubernetes documentation.
 */
import type { Namespace, Pod } from '../../api/generated/core/v1.ts';
import type { NetworkPolicy } from '../../api/generated/networking/v1.ts';
import { MAX_MEMBERS, MAX_POLICY_SIZE } from '../../api/kinds/network/networkpolicies/size.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { type ApplyLoop, startApplyLoop } from '../../base/concurrency/apply-loop.ts';
import { inTurns } from '../../base/concurrency/in-turns.ts';
import { createReadBack, type ReadBack } from '../../base/concurrency/read-back.ts';
import type { Steps } from '../../base/concurrency/steps.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Informer, InformerFactory, InformerOptions } from '../../client/types.ts';
import type { PacketFilter } from '../services/core/port.ts';
import { policyPodOf } from './core/compile.ts';
import { PolicyPlanner } from './core/planner.ts';

export interface NetworkPolicyDeps {
  readonly informers: InformerFactory;
  readonly packetFilter: PacketFilter;
  readonly log: Log;
  readonly clock: Clock;
  readonly config: { readonly nodeName: string; readonly table: string };
}

/** A pod with addresses on this node. */
export interface AttachedPod {
  readonly namespace: string;
  readonly name: string;
  readonly ips: readonly string[];
}

export interface NetworkPolicies {
  /** Starts watching. Rules of an earlier process stay until the first complete state replaces them. */
  start(attached: readonly AttachedPod[]): Promise<void>;
  /**
   * Resolves when the rules for a pod's new addresses are in force; no container of the pod may start before. Throws
   * CodedError 'network-policy' when they cannot be applied in time. Without a reachable API server the pod is admitted
   * with the existing rules.
   */
  admit(namespace: string, name: string, ips: readonly string[]): Promise<void>;
  /** Handles released addresses of a pod. */
  release(namespace: string, name: string): void;
  /**
   * Compares the rules with those in the kernel and restores removed ones. A table that is listed in `damaged` as
   * `FAMILY NAME` is replaced without a comparison. Resolves when the rules are applied.
   */
  verify(damaged: ReadonlySet<string>): Promise<void>;
  /** `keepRules` leaves the rules in force, for a restart of the host process. */
  stop(options?: { readonly keepRules?: boolean }): Promise<void>;
}

/**
 * Timeout for the first complete state. A reachable API server sends the state earlier. If it is not reachable, the
 * informers have loaded the last known state within this time; without such a state, pods of this host start without
 * network policies.
 */
const FIRST_STATE_MS = 5_000;
const APPLY_MS = 5_000;
const MAX_LISTED = 10;

const POLICIES: InformerOptions = { lastKnown: { set: 'network-policies' } };
const NAMESPACES: InformerOptions = { lastKnown: { set: 'namespaces' } };
const PODS: InformerOptions = { reduce: reducedPod, lastKnown: { set: 'policy-pods' } };

export const createNetworkPolicies = (deps: NetworkPolicyDeps): NetworkPolicies => new PolicyEnforcement(deps);

class PolicyEnforcement implements NetworkPolicies {
  readonly #deps: NetworkPolicyDeps;
  readonly #planner: PolicyPlanner;
  readonly #turn: PlanningTurn;
  readonly #readBack: ReadBack;
  readonly #reportOversized: (policies: ReadonlySet<string>) => void;
  readonly #unsubscribe: (() => void)[] = [];
  #loop: ApplyLoop | undefined;
  #isStopped = false;
  /** Resolves with a complete state: at start, and again after the first policy requires the pods. */
  #complete = Promise.withResolvers<void>();
  #isComplete = false;
  #followsPods = false;
  /** Whether the rules in the kernel must be compared before the next program. */
  #isComparisonDue = false;

  constructor(deps: NetworkPolicyDeps) {
    this.#deps = deps;
    this.#planner = new PolicyPlanner(deps.config);
    this.#turn = planningTurn(deps.clock);
    this.#readBack = createTableReadBack(deps);
    this.#reportOversized = oversizedReport(deps.log);
  }

  async start(attached: readonly AttachedPod[]): Promise<void> {
    const { packetFilter, informers, clock, log } = this.#deps;
    for (const { namespace, name, ips } of attached) this.#planner.attach(namespace, name, ips);
    const problem = await packetFilter.probe();
    if (this.#isStopped) return;
    if (problem !== undefined) {
      log.error('network policies are not enforced on this host: no usable nft', { why: problem });
      this.#complete.resolve();
      return;
    }
    const apply = (): Promise<void> => this.#apply();
    this.#loop = startApplyLoop({ apply, failure: 'network policies not applied; retrying', clock, log });
    const policies: Informer<NetworkPolicy> = informers.informer(resources.networkPolicies, POLICIES);
    this.#follow(
      policies,
      (policy) => {
        this.#planner.setPolicy(policy);
        void this.#followPods();
      },
      (key) => this.#planner.deletePolicy(key),
    );
    await policies.synced;
    if (!this.#followsPods && !this.#isStopped) this.#completed();
  }

  async admit(namespace: string, name: string, ips: readonly string[]): Promise<void> {
    const { clock, log } = this.#deps;
    this.#turn.change(() => this.#planner.attach(namespace, name, ips));
    this.#loop?.touch();
    if (!(await inTime(clock, this.#complete.promise, FIRST_STATE_MS))) {
      log.warn('pod admitted before network policies are known', { pod: `${namespace}/${name}` });
      return;
    }
    const loop = this.#loop;
    // While a program is planned, the planner does not have the new addresses yet, so `isIsolated` is not decisive.
    if (loop === undefined || (!this.#turn.isPlanning && !this.#planner.isIsolated(namespace, name))) return;
    if (await inTime(clock, loop.settled(), APPLY_MS)) return;
    throw new CodedError('network-policy', `pod ${namespace}/${name}: its network policies are not applied yet`);
  }

  release(namespace: string, name: string): void {
    this.#turn.change(() => this.#planner.detach(namespace, name));
    this.#loop?.touch();
  }

  async verify(damaged: ReadonlySet<string>): Promise<void> {
    this.#isComparisonDue = true;
    if (damaged.has(`inet ${this.#deps.config.table}`)) this.#turn.change(() => this.#planner.reset());
    this.#loop?.touch();
    await this.#loop?.settled();
  }

  async stop(options?: { readonly keepRules?: boolean }): Promise<void> {
    this.#isStopped = true;
    this.#readBack.stop();
    for (const each of this.#unsubscribe) each();
    await this.#loop?.stop();
    if (options?.keepRules === true || this.#loop === undefined) return;
    const { packetFilter, log, config } = this.#deps;
    const { table } = config;
    await packetFilter
      .apply(`add table inet ${table}\ndelete table inet ${table}\n`)
      .catch((error: unknown) => log.warn('network policy rules not removed', { table, error: messageOf(error) }));
  }

  /** Applies the difference between the rules in the kernel and the planned ones. */
  async #apply(): Promise<void> {
    // Rules from an incomplete list of pods would deny permitted traffic.
    if (!this.#isComplete) return;
    if (this.#isComparisonDue && (await isChangedExternally(this.#readBack, this.#deps))) this.#planner.reset();
    this.#isComparisonDue = false;
    const program = await this.#turn.plan(this.#planner.programSteps());
    this.#reportOversized(this.#planner.oversized);
    if (program === '') return;
    this.#readBack.applying();
    await this.#deps.packetFilter.apply(program).catch((error: unknown) => {
      this.#planner.reset();
      throw error;
    });
    this.#readBack.applied();
    this.#deps.log.v(4, 'network policies applied', { policies: this.#planner.policies });
  }

  /** Starts to watch namespaces and pods, unless that has already begun. */
  async #followPods(): Promise<void> {
    if (this.#followsPods) return;
    this.#followsPods = true;
    if (this.#isComplete) this.#complete = Promise.withResolvers();
    this.#isComplete = false;
    const planner = this.#planner;
    const namespaces: Informer<Namespace> = this.#deps.informers.informer(resources.namespaces, NAMESPACES);
    const pods: Informer<Pod> = this.#deps.informers.informer(resources.pods, PODS);
    this.#follow(
      namespaces,
      ({ metadata }) => planner.setNamespace(metadata?.name ?? '', metadata?.labels ?? {}),
      (key) => planner.deleteNamespace(key),
    );
    this.#follow(
      pods,
      (pod) => setPod(planner, pod),
      (key) => planner.deletePod(key),
    );
    await Promise.all([namespaces.synced, pods.synced]);
    this.#completed();
  }

  #completed(): void {
    this.#isComplete = true;
    this.#complete.resolve();
    this.#loop?.touch();
  }

  /** Starts the informer. `set` and `remove` change the planner. */
  #follow<T extends KubeObject>(informer: Informer<T>, set: (object: T) => void, remove: (key: string) => void): void {
    const change = (make: () => void): void => {
      this.#turn.change(make);
      this.#loop?.touch();
    };
    const changed = (object: T): void => change(() => set(object));
    const deleted = (object: T): void => change(() => remove(objectKey(object)));
    this.#unsubscribe.push(informer.onChange({ added: changed, updated: changed, deleted }));
    informer.start();
  }
}

function setPod(planner: PolicyPlanner, pod: Pod): void {
  const known = policyPodOf(pod);
  if (known === undefined) planner.deletePod(objectKey(pod));
  else planner.setPod(known);
}

interface PlanningTurn {
  readonly isPlanning: boolean;
  plan(steps: Steps<string>): Promise<string>;
  /** Calls `make`. While a program is being planned, the call is delayed until after the last step. */
  change(make: () => void): void;
}

/** Delays changes of the planner while it plans a program, because the state must not change between two steps. */
function planningTurn(clock: Clock): PlanningTurn {
  let isPlanning = false;
  let waiting: (() => void)[] = [];
  return {
    get isPlanning() {
      return isPlanning;
    },
    async plan(steps) {
      isPlanning = true;
      try {
        return await inTurns(steps, clock);
      } finally {
        isPlanning = false;
        const changes = waiting;
        waiting = [];
        for (const make of changes) make();
      }
    },
    change(make) {
      if (isPlanning) waiting.push(make);
      else make();
    },
  };
}

/** Returns a function that logs the policies without rules whenever the set of these policies changes. */
function oversizedReport(log: Log): (policies: ReadonlySet<string>) => void {
  let reported = '';
  return (policies) => {
    const names = [...policies].sort().slice(0, MAX_LISTED).join();
    if (names !== reported && names !== '')
      log.warn('network policies exceed the size limit; they permit no connections', {
        policies: names,
        max: MAX_POLICY_SIZE,
        maxAddresses: MAX_MEMBERS,
      });
    reported = names;
  };
}

const createTableReadBack = ({ packetFilter, clock, log, config }: NetworkPolicyDeps): ReadBack =>
  createReadBack({
    read: async () => [await packetFilter.outline('inet', config.table)],
    onError: (error) => log.v(2, 'network policy rules not read', { error: messageOf(error) }),
    clock,
  });

async function isChangedExternally(readBack: ReadBack, { log, config }: NetworkPolicyDeps): Promise<boolean> {
  try {
    const differs = await readBack.differs();
    if (differs) log.warn('network policy rules changed by another program; they are restored', { ...config });
    return differs;
  } catch (error) {
    log.v(2, 'network policy rules not compared', { ...config, error: messageOf(error) });
    return false;
  }
}

/** Resolves with true when `work` is done, or with false if `ms` pass before. */
function inTime(clock: Clock, work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(ms, () => resolve(false));
    work.then(() => resolve(true), reject).finally(() => timer.cancel());
  });
}

/** Keeps only the fields that policies use, because thousands of pods are held on each node. */
function reducedPod({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels } = metadata ?? {};
  const portsOf = (containers: NonNullable<Pod['spec']>['containers'] = []): typeof containers =>
    containers.flatMap(({ name: container, ports = [], restartPolicy }) =>
      ports.length === 0 ? [] : [{ name: container, ports, ...(restartPolicy === undefined ? {} : { restartPolicy }) }],
    );
  return {
    metadata: { ...given({ name, namespace, uid, resourceVersion, labels }) },
    spec: {
      containers: portsOf(spec?.containers),
      initContainers: portsOf(spec?.initContainers),
      ...given({ nodeName: spec?.nodeName, hostNetwork: spec?.hostNetwork }),
    },
    status: { ...given({ phase: status?.phase, podIP: status?.podIP, podIPs: status?.podIPs }) },
  };
}

type Given<T> = { [field in keyof T]?: NonNullable<T[field]> };

function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}
