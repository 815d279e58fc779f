import type { Lease } from '../../api/generated/coordination/v1.ts';
import type { Node, NodeCondition, NodeStatus } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { microTimestamp } from '../../base/time/timestamps.ts';
import type { ApiClient } from '../../client/types.ts';
import type { KubeletConfig } from '../config/kubelet-config.ts';
import type { KubeletEvents } from '../pods/events.ts';
import type { HostInfo } from '../port.ts';
import { keepForeignResources } from './foreign-resources.ts';
import { nodeAnnotations, nodeLabels, nodeObject } from './node-status.ts';

/** Retry quickly at start, so that the node registers as soon as the API server responds. */
const EAGER_RETRY_MS = 75;
const EAGER_FOR_MS = 60_000;
const RETRY_MS = 1_000;
/** Shorter interval for a node that is not ready, so that it becomes Ready without delay. */
const NOT_READY_MS = 200;
const LEASE_NAMESPACE = 'kube-node-lease';

export interface NodeAgentOptions {
  readonly config: KubeletConfig;
  readonly info: HostInfo;
  readonly client: ApiClient;
  readonly events: KubeletEvents;
  readonly clock: Clock;
  readonly log: Log;
  /** Computes the current status. `previous` keeps transition times. */
  readonly status: (previous: readonly NodeCondition[]) => Promise<NodeStatus>;
  /**
   * Unique names of the attachable volumes in use. Also part of a re-created Node, so that the controller does not
   * detach them.
   */
  readonly volumesInUse: () => Promise<string[]>;
  readonly onRegistered: (node: Node) => void;
  readonly onReady: () => void;
}

/**
 * Registers the host, reports its status when it changes or every five minutes, and renews its lease. Source:
 * pkg/kubelet/kubelet_node_status.go.
 */
export class NodeAgent {
  private readonly options: NodeAgentOptions;
  private node: Node | undefined;
  private reportedAtMs = Number.NEGATIVE_INFINITY;
  private timer: Timer | undefined;
  private leaseTimer: Timer | undefined;
  private lease: Lease | undefined;
  private leaseTrouble = '';
  private ready = false;
  private stopped = false;
  private reporting = false;
  private again = false;

  constructor(options: NodeAgentOptions) {
    this.options = options;
  }

  /** Registers the node, retrying until it succeeds, and then reports its status continuously. */
  async start(): Promise<void> {
    const { clock, log, config } = this.options;
    const beganMs = clock.monotonicMs();
    let complained: string | undefined;
    while (!this.stopped) {
      try {
        this.node = await this.register();
        break;
      } catch (error) {
        const message = messageOf(error);
        if (message !== complained && !isApiError(error, 'ServiceUnavailable')) {
          complained = message;
          log.warn('node not registered yet', { error: message });
        }
        await this.sleep(clock.monotonicMs() - beganMs < EAGER_FOR_MS ? EAGER_RETRY_MS : RETRY_MS);
      }
    }
    if (this.node === undefined) return;
    log.info('node registered', { node: config.nodeName });
    this.options.onRegistered(this.node);
    // An existing Node still has an old status. The node counts as ready only after the first report.
    if (this.reportedAtMs > Number.NEGATIVE_INFINITY) this.noteReady(this.node);
    void this.renewLease();
    this.loop();
  }

  /** Schedules a report because an input of the status has changed. */
  kick(): void {
    if (this.node === undefined || this.stopped) return;
    if (this.reporting) {
      this.again = true;
      return;
    }
    this.loop();
  }

  /** Handles a Node update from an informer: another client may have changed its status. */
  observe(node: Node): void {
    const known = this.node?.metadata;
    const { resourceVersion = '0', uid } = node.metadata ?? {};
    if (known === undefined || known.uid !== uid || BigInt(resourceVersion) <= BigInt(known.resourceVersion ?? '0'))
      return;
    const changed = canonicalJson(node.status ?? {}) !== canonicalJson(this.node?.status ?? {});
    this.node = node;
    if (changed) this.kick();
  }

  /** Ready condition of the Node as last reported by this kubelet. */
  get isReady(): boolean {
    return this.ready;
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.leaseTimer?.cancel();
  }

  private loop(): void {
    this.timer?.cancel();
    this.reporting = true;
    void this.report()
      .catch((error: unknown) => {
        this.options.log.v(2, 'node status not written', { error: messageOf(error) });
        return RETRY_MS;
      })
      .then((delay) => {
        this.reporting = false;
        if (this.stopped) return;
        if (this.again) {
          this.again = false;
          this.loop();
        } else this.timer = this.options.clock.setTimer(delay, () => this.loop());
      });
  }

  private async register(): Promise<Node> {
    const { client, config, info } = this.options;
    const nodes = client.resource(resources.nodes);
    const volumesInUse = await this.options.volumesInUse();
    const status = { ...(await this.options.status([])), ...(volumesInUse.length === 0 ? {} : { volumesInUse }) };
    try {
      const created = await nodes.create(nodeObject(config, info, status));
      this.reportedAtMs = this.options.clock.monotonicMs();
      return created;
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    const existing = await nodes.get(config.nodeName);
    const labels = nodeLabels(config, info);
    const annotations = nodeAnnotations(config);
    const { metadata } = existing;
    const wrong =
      Object.entries(labels).some(([name, value]) => metadata?.labels?.[name] !== value) ||
      Object.entries(annotations).some(([name, value]) => metadata?.annotations?.[name] !== value);
    return wrong
      ? nodes.patch(config.nodeName, undefined, 'strategic', { metadata: { labels, annotations } })
      : existing;
  }

  /** Returns the delay in milliseconds until the next report. */
  private async report(): Promise<number> {
    const { clock, client, config } = this.options;
    const known = this.node;
    if (known === undefined) return RETRY_MS;
    const { status, gone } = keepForeignResources(
      await this.options.status(known.status?.conditions ?? []),
      known.status ?? {},
    );
    const own = new Set(status.conditions?.map(({ type }) => type));
    const changed = significant(status, own) !== significant(known.status ?? {}, own);
    const due = clock.monotonicMs() - this.reportedAtMs >= config.nodeStatusReportFrequencyMs;
    if (changed || due) {
      try {
        this.node = await client
          .resource(resources.nodes)
          .patch(
            config.nodeName,
            undefined,
            'strategic',
            { status: patchOf(known.status ?? {}, status, gone) },
            { subresource: 'status' },
          );
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
        // The Node was deleted while the kubelet runs: register it again, as upstream's kubelet does at its next start.
        this.node = await this.register();
        this.options.onRegistered(this.node);
      }
      this.reportedAtMs = clock.monotonicMs();
      this.noteReady(this.node);
    }
    return this.ready ? config.nodeStatusUpdateFrequencyMs : NOT_READY_MS;
  }

  private noteReady(node: Node): void {
    const ready = node.status?.conditions?.find((each) => each.type === 'Ready')?.status === 'True';
    if (ready && !this.ready) {
      this.options.events.about(
        node,
        'Normal',
        'NodeReady',
        `Node ${this.options.config.nodeName} status is now: NodeReady`,
      );
      this.options.onReady();
    } else if (!ready && this.ready) {
      this.options.events.about(
        node,
        'Normal',
        'NodeNotReady',
        `Node ${this.options.config.nodeName} status is now: NodeNotReady`,
      );
    }
    this.ready = ready;
  }

  private async renewLease(): Promise<void> {
    const { clock, client, config, log } = this.options;
    const leases = client.resource(resources.leases);
    const spec = {
      holderIdentity: config.nodeName,
      leaseDurationSeconds: config.nodeLeaseDurationSeconds,
      renewTime: microTimestamp(clock.nowMs()),
    };
    let delay = (config.nodeLeaseDurationSeconds * 1000) / 4;
    try {
      if (this.lease === undefined) {
        try {
          this.lease = await leases.get(config.nodeName, LEASE_NAMESPACE);
        } catch (error) {
          if (!isApiError(error, 'NotFound')) throw error;
        }
      }
      if (this.lease === undefined) {
        const { uid = '' } = this.node?.metadata ?? {};
        this.lease = await leases.create({
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: {
            name: config.nodeName,
            namespace: LEASE_NAMESPACE,
            ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid }],
          },
          spec,
        });
      } else {
        this.lease = await leases.update({ ...this.lease, spec: { ...this.lease.spec, ...spec } });
      }
      this.leaseTrouble = '';
    } catch (error) {
      this.lease = undefined;
      delay = RETRY_MS;
      const reason = messageOf(error);
      // The renewal is retried every second. Each new reason is logged at level 2, repetitions at level 4.
      log.v(reason === this.leaseTrouble ? 4 : 2, 'node lease not renewed', { error: reason });
      this.leaseTrouble = reason;
    }
    if (!this.stopped) this.leaseTimer = clock.setTimer(delay, () => void this.renewLease());
  }

  private sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.options.clock.setTimer(delayMs, resolve);
    });
  }
}

/** The part of a status that justifies a report: without heartbeat times and without conditions of other components. */
function significant(status: NodeStatus, own: ReadonlySet<string>): string {
  return canonicalJson({
    ...status,
    conditions: (status.conditions ?? [])
      .map(({ type, status: value, reason, message }) => ({ type, value, reason, message }))
      .filter((each) => own.has(each.type)),
    // Other components own the other fields. Runtime features are part of the first report and do not change.
    config: undefined,
    features: undefined,
    phase: undefined,
    runtimeHandlers: undefined,
    volumesAttached: undefined,
    volumesInUse: undefined,
  });
}

/**
 * Builds a strategic merge patch. Conditions merge by type. Addresses also merge by type, but a dual-stack host has two
 * of one type, so changed addresses replace the whole list. Source: k8s.io/kubernetes/pkg/util/node PatchNodeStatus.
 */
function patchOf(from: NodeStatus, to: NodeStatus, gone: readonly string[]): Record<string, unknown> {
  const { addresses = [], ...kept } = to;
  const removed = Object.fromEntries(gone.map((name) => [name, null]));
  const rest = {
    ...kept,
    capacity: { ...kept.capacity, ...removed },
    allocatable: { ...kept.allocatable, ...removed },
  };
  if (canonicalJson(addresses) === canonicalJson(from.addresses ?? [])) return { ...rest };
  return { ...rest, addresses: [...addresses, { $patch: 'replace' }] };
}
