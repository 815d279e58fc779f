import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import { CONFIG_MIRROR, fullName } from './static-pod.ts';

const RETRY_MS = 1_000;

/**
 * Maintains a mirror pod at the API for every static pod and deletes other mirror pods. Deleting a mirror pod does not
 * affect the static pod; the mirror is created again. Source: pkg/kubelet/pod/mirror_client.go.
 */
export class MirrorPods {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly staticPods: () => readonly Pod[];
  private readonly mirrors: () => readonly Pod[];
  private client: ApiClient | undefined;
  private node: Node | undefined;
  private running = false;
  private dirty = false;
  private timer: Timer | undefined;
  private stopped = false;

  constructor(options: {
    readonly clock: Clock;
    readonly log: Log;
    readonly staticPods: () => readonly Pod[];
    readonly mirrors: () => readonly Pod[];
  }) {
    this.clock = options.clock;
    this.log = options.log;
    this.staticPods = options.staticPods;
    this.mirrors = options.mirrors;
  }

  /** Starts to maintain mirror pods in the API. `node` is the registered Node, which owns them. */
  connect(client: ApiClient, node: Node): void {
    this.client = client;
    this.node = node;
    this.kick();
  }

  kick(): void {
    if (this.client === undefined || this.stopped) return;
    this.dirty = true;
    if (this.running) return;
    this.running = true;
    void this.run(this.client);
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  private async run(client: ApiClient): Promise<void> {
    while (this.dirty && !this.stopped) {
      this.dirty = false;
      if (await this.sync(client)) continue;
      this.timer?.cancel();
      this.timer = this.clock.setTimer(RETRY_MS, () => this.kick());
    }
    this.running = false;
  }

  /** Returns false if a write failed. A rejected mirror pod does not prevent the writes of the other mirror pods. */
  private async sync(client: ApiClient): Promise<boolean> {
    let isComplete = true;
    const write = async (pod: Pod, done: Promise<void>): Promise<void> => {
      try {
        await done;
      } catch (error) {
        isComplete = false;
        this.log.v(2, 'mirror pod not synchronized yet', { pod: fullName(pod), error: messageOf(error) });
      }
    };
    const wanted = new Map(this.staticPods().map((pod) => [fullName(pod), pod]));
    for (const mirror of this.mirrors()) {
      const pod = wanted.get(fullName(mirror));
      const hash = mirror.metadata?.annotations?.[CONFIG_MIRROR];
      const current =
        pod !== undefined && hash === pod.metadata?.uid && mirror.metadata?.deletionTimestamp === undefined;
      if (current) wanted.delete(fullName(mirror));
      else await write(mirror, this.remove(client, mirror));
    }
    for (const pod of wanted.values()) await write(pod, this.create(client, pod));
    return isComplete;
  }

  private async remove(client: ApiClient, mirror: Pod): Promise<void> {
    const { name = '', namespace, uid } = mirror.metadata ?? {};
    try {
      await client.resource(resources.pods).delete(name, namespace, {
        gracePeriodSeconds: 0,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }

  private async create(client: ApiClient, pod: Pod): Promise<void> {
    const metadata = pod.metadata ?? {};
    const mirror: Pod = structuredClone({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...(metadata.name === undefined ? {} : { name: metadata.name }),
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
        ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
        annotations: { ...metadata.annotations, [CONFIG_MIRROR]: metadata.uid ?? '' },
        ownerReferences: [
          {
            apiVersion: 'v1',
            kind: 'Node',
            name: this.node?.metadata?.name ?? '',
            uid: this.node?.metadata?.uid ?? '',
            controller: true,
          },
        ],
      },
      ...(pod.spec === undefined ? {} : { spec: pod.spec }),
    });
    try {
      await client.resource(resources.pods).create(mirror);
    } catch (error) {
      // The mirror pod already exists. The informer will deliver it soon.
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
  }
}
