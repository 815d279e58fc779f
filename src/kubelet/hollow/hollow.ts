/**
 * Hollow nodes like kubemark's: Node objects and heartbeats, where pods become Ready immediately and no container runs.
 * They load a scheduler, controllers and an API server like a large cluster.
 */

import type { Lease } from '../../api/generated/coordination/v1.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { microTimestamp, timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient, Informer, InformerFactory } from '../../client/types.ts';

export interface HollowDeps {
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly log: Log;
  readonly clock: Clock;
}

export interface HollowOptions {
  readonly nodes: number;
  /** Prefix of node names `<prefix>-0`, `<prefix>-1`, …: letters, digits and dashes. */
  readonly prefix: string;
  readonly zones: number;
}

export interface HollowNodes {
  /** Resolves when all nodes are Ready. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Maximum number of concurrent requests. */
const MAX_REQUESTS = 64;
const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_SECONDS = 40;
const RENEW_MS = 10_000;
const CAPACITY = { cpu: '32', memory: '64Gi', 'ephemeral-storage': '256Gi', pods: '250' };

export function createHollowNodes(deps: HollowDeps, options: HollowOptions): HollowNodes {
  return new Hollow(deps, options);
}

class Hollow implements HollowNodes {
  readonly #deps: HollowDeps;
  readonly #names: ReadonlySet<string>;
  readonly #zones: number;
  readonly #pods: Informer<Pod>;
  readonly #pending: (() => Promise<void>)[] = [];
  #underWay = 0;
  #podsSeen = 0;
  #stopped = false;
  #timer: Timer | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(deps: HollowDeps, { nodes, prefix, zones }: HollowOptions) {
    this.#deps = deps;
    this.#zones = zones;
    this.#names = new Set(Array.from({ length: nodes }, (_, index) => `${prefix}-${index}`));
    this.#pods = deps.informers.informer(resources.pods);
  }

  async start(): Promise<void> {
    await Promise.all([...this.#names].map((name, index) => this.#queue(() => this.#register(name, index))));
    this.#deps.log.info('hollow nodes registered', { nodes: this.#names.size });
    const changed = (pod: Pod): void => {
      if (this.#names.has(pod.spec?.nodeName ?? '')) void this.#queue(() => this.#run(pod));
    };
    this.#unsubscribe = this.#pods.onChange({ added: changed, updated: changed });
    this.#pods.start();
    await this.#pods.synced;
    this.#renewLater(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#unsubscribe?.();
    this.#pending.length = 0;
    const nodes = this.#deps.client.resource(resources.nodes);
    await Promise.all([...this.#names].map((name) => this.#queue(() => nodes.delete(name))));
  }

  async #register(name: string, index: number): Promise<void> {
    const { client } = this.#deps;
    const nodes = client.resource(resources.nodes);
    const node: Node = {
      metadata: {
        name,
        labels: {
          'kubernetes.io/hostname': name,
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'hyperedge.dev/hollow': 'true',
          ...(this.#zones > 0 ? { 'topology.kubernetes.io/zone': `zone-${index % this.#zones}` } : {}),
        },
      },
    };
    await nodes.create(node).catch((error: unknown) => {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    });
    await this.#renew(name);
    const now = this.#now();
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'hollow node',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    const status = { capacity: CAPACITY, allocatable: CAPACITY, conditions: [condition] };
    await nodes.patch(name, undefined, 'strategic', { status }, { subresource: 'status' });
  }

  /** Renews a tenth of the nodes per second, so that heartbeats are evenly distributed. */
  #renewLater(step: number): void {
    if (this.#stopped) return;
    const steps = 10;
    this.#timer = this.#deps.clock.setTimer(RENEW_MS / steps, () => {
      [...this.#names].forEach((name, index) => {
        if (index % steps === step % steps) void this.#queue(() => this.#renew(name));
      });
      this.#renewLater(step + 1);
    });
  }

  async #renew(name: string): Promise<void> {
    const leases = this.#deps.client.resource(resources.leases);
    const renewTime = microTimestamp(this.#deps.clock.nowMs());
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    try {
      await leases.patch(name, LEASE_NAMESPACE, 'merge', { spec });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      const lease: Lease = { metadata: { name, namespace: LEASE_NAMESPACE }, spec };
      await leases.create(lease).catch((again: unknown) => {
        if (!isApiError(again, 'AlreadyExists')) throw again;
      });
    }
  }

  async #run({ metadata, spec, status }: Pod): Promise<void> {
    const { name = '', namespace, uid, deletionTimestamp } = metadata ?? {};
    const pods = this.#deps.client.resource(resources.pods);
    if (deletionTimestamp !== undefined) {
      const own = uid === undefined ? {} : { preconditions: { uid } };
      await pods.delete(name, namespace, { gracePeriodSeconds: 0, ...own });
      return;
    }
    if ((status?.phase ?? 'Pending') !== 'Pending') return;
    const index = this.#podsSeen++;
    const podIP = `100.${64 + ((index >> 16) & 63)}.${(index >> 8) & 255}.${index & 255}`;
    const now = this.#now();
    const conditions = ['PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: now,
    }));
    const containerStatuses = (spec?.containers ?? []).map((container) => ({
      name: container.name,
      image: container.image ?? '',
      imageID: '',
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: now } },
    }));
    const running = { phase: 'Running', podIP, podIPs: [{ ip: podIP }], startTime: now, conditions, containerStatuses };
    await pods.patch(name, namespace, 'strategic', { metadata: { uid }, status: running }, { subresource: 'status' });
  }

  #now(): string {
    return timestamp(this.#deps.clock.nowMs());
  }

  /** Resolves when the work is done. Logs failures, except for deleted objects. */
  #queue(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.#pending.push(async () => {
        try {
          await work();
        } catch (error) {
          const isGone = isApiError(error, 'NotFound') || isApiError(error, 'Conflict');
          if (!isGone) this.#deps.log.warn('request failed', { error: messageOf(error) });
        }
        resolve();
      });
      this.#next();
    });
  }

  #next(): void {
    if (this.#underWay >= MAX_REQUESTS) return;
    const work = this.#pending.shift();
    if (work === undefined) return;
    this.#underWay++;
    void work().finally(() => {
      this.#underWay--;
      this.#next();
    });
  }
}
