/** Collects the results of all probes on the leading master, including the reports of the hosts. */
import type { Lease } from '../../../api/generated/coordination/v1.ts';
import type { Node } from '../../../api/generated/core/v1.ts';
import { hostReportOf } from '../../../api/kinds/nodes/nodes/host-report.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import { kubeletSkewState } from '../../../base/versions/version-skew.ts';
import type { ApiClient, Informer, InformerFactory } from '../../../client/types.ts';
import { probeMetrics, probePools, probeStorage } from './api-probes.ts';
import type { HostFact, LeaseFact, Probed, ProbeFacts } from './core/index.ts';
import type { ProbeStore } from './port.ts';

export interface ProberDeps {
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly probeStore: ProbeStore;
  readonly clock: Clock;
  /** Version of the API server that this host runs. */
  readonly kubernetes: string;
  readonly wanted: { readonly storage: boolean; readonly metrics: boolean };
}

/** Interval of probes, less than half of the maximum age of a result. Sudden faults are in the reports of the hosts. */
const API_MS = 12_000;
const STORE_MS = 12_000;
/** Interval while a probe fails or its value has just changed. */
const UNSETTLED_MS = 4_000;
const NODE_LEASES = 'kube-node-lease';
const CONTROLLERS = 'kube-system/kube-controller-manager';
const SCHEDULER = 'kube-system/kube-scheduler';
const MASTER_LABEL = 'node-role.kubernetes.io/master';

type Result<T> =
  | { readonly value: T | undefined; readonly atMs: number }
  | { readonly message: string; readonly atMs: number };

export class Prober {
  readonly #deps: ProberDeps;
  readonly #nodes: Informer<Node>;
  readonly #leases: Informer<Lease>;
  /**
   * Renewal time of each Lease, with the local time at which the renewal was observed. Local time is used because the
   * clocks of hosts may differ.
   */
  readonly #renewed = new Map<string, { readonly time: string; readonly atMs: number }>();
  readonly #results = new Map<string, Result<unknown>>();
  readonly #timers = new Map<string, Timer>();
  #unsubscribe: (() => void)[] = [];
  #running = false;

  constructor(deps: ProberDeps) {
    this.#deps = deps;
    this.#nodes = deps.informers.informer(resources.nodes, { reduce: reducedNode });
    this.#leases = deps.informers.informer(resources.leases);
  }

  /** Starts the probes and calls `changed` whenever a result has changed. */
  start(changed: () => void): void {
    this.#running = true;
    const seen = (lease: Lease): void => this.#see(lease);
    this.#unsubscribe = [
      this.#nodes.onChange({ added: changed, updated: changed, deleted: changed }),
      this.#leases.onChange({ added: seen, updated: seen }),
    ];
    const { client, wanted, probeStore } = this.#deps;
    const done = changed;
    this.#repeat('etcd', STORE_MS, probeStore, done);
    this.#repeat('pools', API_MS, () => probePools(client), done);
    const served = (): boolean => {
      const lease = this.#lease(CONTROLLERS);
      return lease.state === 'value' && lease.value.renewedMs < lease.value.durationMs;
    };
    this.#repeat('storage', API_MS, () => probeStorage(client, wanted.storage, served()), done);
    this.#repeat('metrics', API_MS, () => probeMetrics(client), done);
  }

  stop(): void {
    this.#running = false;
    for (const timer of this.#timers.values()) timer.cancel();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  get nodeInformer(): Informer<Node> {
    return this.#nodes;
  }

  get nodes(): readonly Node[] {
    return this.#nodes.list();
  }

  facts(updatingTo: string | undefined): ProbeFacts {
    return {
      hosts: this.hosts(),
      etcd: this.#probed('etcd'),
      controllersLease: this.#lease(CONTROLLERS),
      schedulerLease: this.#lease(SCHEDULER),
      pools: this.#probed('pools'),
      storage: this.#probed('storage'),
      metrics: this.#deps.wanted.metrics ? this.#probed('metrics') : { state: 'absent' },
      skew: this.#skew(),
      updatingTo,
    };
  }

  hosts(): HostFact[] {
    const nowMs = this.#deps.clock.monotonicMs();
    return this.#nodes.list().map((node) => {
      const name = node.metadata?.name ?? '';
      const lease = this.#renewed.get(`${NODE_LEASES}/${name}`);
      return {
        name,
        master: node.metadata?.labels?.[MASTER_LABEL] !== undefined,
        report: hostReportOf(node),
        ageMs: lease === undefined ? Number.POSITIVE_INFINITY : nowMs - lease.atMs,
      };
    });
  }

  #see({ metadata, spec }: Lease): void {
    const key = `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
    const time = String(spec?.renewTime ?? '');
    if (this.#renewed.get(key)?.time === time) return;
    this.#renewed.set(key, { time, atMs: this.#deps.clock.monotonicMs() });
  }

  #lease(key: string): Probed<LeaseFact> {
    const lease = this.#leases.get(key);
    const renewed = this.#renewed.get(key);
    if (lease === undefined || renewed === undefined) return { state: 'none' };
    const { holderIdentity = '', leaseDurationSeconds = 15 } = lease.spec ?? {};
    const renewedMs = this.#deps.clock.monotonicMs() - renewed.atMs;
    const value = { holder: holderIdentity, renewedMs, durationMs: leaseDurationSeconds * 1000 };
    return { state: 'value', value, ageMs: 0 };
  }

  #skew(): string[] {
    return this.#nodes.list().flatMap(({ metadata, status }) => {
      const { kubernetes } = this.#deps;
      const kubelet = status?.nodeInfo?.kubeletVersion ?? '';
      return kubeletSkewState(kubelet, kubernetes) === 'KubeletSkewUnsupported'
        ? [
            `node ${metadata?.name}: kubelet ${kubelet} is not compatible with API server ${kubernetes}; upgrade this host`,
          ]
        : [];
    });
  }

  #probed<T>(name: string): Probed<T> {
    const result = this.#results.get(name) as Result<T> | undefined;
    if (result === undefined) return { state: 'none' };
    const ageMs = this.#deps.clock.monotonicMs() - result.atMs;
    if ('message' in result) return { state: 'failed', message: result.message, ageMs };
    return result.value === undefined ? { state: 'absent' } : { state: 'value', value: result.value, ageMs };
  }

  #repeat(name: string, periodMs: number, probe: () => Promise<unknown>, done: () => void): void {
    const { clock } = this.#deps;
    const run = async (): Promise<void> => {
      const before = this.#results.get(name);
      let result: Result<unknown>;
      try {
        result = { value: await probe(), atMs: clock.monotonicMs() };
      } catch (error) {
        result = { message: messageOf(error), atMs: clock.monotonicMs() };
      }
      if (!this.#running) return;
      this.#results.set(name, result);
      const steady =
        before !== undefined &&
        'value' in before &&
        'value' in result &&
        semanticEqual(before.value ?? null, result.value ?? null);
      this.#timers.set(
        name,
        clock.setTimer(steady ? periodMs : UNSETTLED_MS, () => void run()),
      );
      done();
    };
    void run();
  }
}

/** Removes fields of a Node that are not needed, because complete Nodes would use much memory in a large cluster. */
function reducedNode(object: KubeObject): KubeObject {
  const { metadata, spec, status } = object as Node;
  const { name, uid, resourceVersion, labels, annotations, creationTimestamp } = metadata ?? {};
  const kept = Object.entries(annotations ?? {}).filter(([key]) => key.startsWith('hyperedge.dev/'));
  const { kubeletVersion, architecture } = status?.nodeInfo ?? {};
  const conditions = status?.conditions
    ?.filter(({ type }) => type === 'Ready')
    .map(({ type, status: value }) => ({ type, status: value }));
  return {
    metadata: { name, uid, resourceVersion, labels, creationTimestamp, annotations: Object.fromEntries(kept) },
    spec: { unschedulable: spec?.unschedulable },
    status: { nodeInfo: { kubeletVersion, architecture }, conditions },
  } as KubeObject;
}
