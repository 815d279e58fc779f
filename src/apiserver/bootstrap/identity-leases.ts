/**
 * Publishes the identity of each API server as a Lease in kube-system, and removes expired Leases. Source: KEP-1965;
 * k8s.io/kubernetes/pkg/controlplane/controller/apiserverleasegc.
 */

import type { Lease } from '../../api/generated/coordination/v1.ts';
import { messageOf } from '../../base/errors.ts';
import type { Timer } from '../../base/time/clock.ts';
import { microTimestamp } from '../../base/time/timestamps.ts';
import type { ServerIdentity } from '../config/server-config.ts';
import type { LoopContext, WriteContext } from '../rest/context.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { ensureObject, ownRequest } from './index.ts';

type IdentityLeasesContext = WriteContext & LoopContext;

const GROUP = 'coordination.k8s.io';
const NAMESPACE = 'kube-system';
const LABEL = 'apiserver.kubernetes.io/identity';
const COMPONENT = 'kube-apiserver';
const DURATION_SECONDS = 3600;
/**
 * Upstream renews every 10 s. This server renews less often, because each renewal is a disk write and the Lease is
 * valid for an hour.
 */
const RENEW_MS = 5 * 60_000;

export class IdentityLeases {
  readonly #context: IdentityLeasesContext;
  readonly #identity: ServerIdentity | undefined;
  readonly #holder: string;
  #timer: Timer | undefined;

  constructor(context: IdentityLeasesContext, identity: ServerIdentity | undefined) {
    this.#context = context;
    this.#identity = identity;
    this.#holder = `${identity?.name ?? ''}_${context.random.uuid()}`;
  }

  /** Writes the Lease of this server and renews it. Rejects if the write fails, and may then be called again. */
  async start(): Promise<void> {
    if (this.#identity === undefined) return;
    await this.#renew(this.#identity);
    await this.#collect();
    this.#again(this.#identity);
  }

  #again(identity: ServerIdentity): void {
    const { clock, log, stopping } = this.#context;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(RENEW_MS, () => {
      if (stopping.aborted) return;
      this.#renew(identity)
        .then(() => this.#collect())
        .catch((error: unknown) => log.v(2, 'identity lease not renewed; retrying', { error: messageOf(error) }))
        .finally(() => this.#again(identity));
    });
  }

  async #renew({ name, hostname }: ServerIdentity): Promise<void> {
    const renewTime = microTimestamp(this.#context.clock.nowMs());
    const labels = { [LABEL]: COMPONENT, 'kubernetes.io/hostname': hostname };
    const spec = { holderIdentity: this.#holder, leaseDurationSeconds: DURATION_SECONDS };
    const lease: Lease = {
      metadata: { name, namespace: NAMESPACE, labels },
      spec: { ...spec, acquireTime: renewTime, renewTime },
    };
    await ensureObject(this.#context, 'leases', GROUP, lease, (stored) => {
      const before = stored as Lease;
      const acquireTime = before.spec?.holderIdentity === this.#holder ? before.spec.acquireTime : renewTime;
      return {
        ...before,
        metadata: { ...before.metadata, labels: { ...before.metadata?.labels, ...labels } },
        spec: { ...before.spec, ...spec, ...(acquireTime === undefined ? {} : { acquireTime }), renewTime },
      } as Lease;
    });
  }

  async #collect(): Promise<void> {
    const { cache, clock } = this.#context;
    for (const object of cache.kind('leases').list(NAMESPACE)) {
      const lease = object.parse<Lease>();
      if (lease.metadata?.labels?.[LABEL] !== COMPONENT || !isExpired(lease, clock.nowMs())) continue;
      await deleteObject(this.#context, ownRequest(this.#context, 'leases', GROUP, NAMESPACE, object.name), {
        gracePeriodSeconds: 0,
        propagation: 'Background',
        uid: lease.metadata.uid,
        resourceVersion: undefined,
        dryRun: false,
      }).catch((error: unknown) => {
        this.#context.log.v(2, 'expired identity lease not deleted', { lease: object.name, error: messageOf(error) });
      });
    }
  }
}

/** As upstream, a Lease without a renew time or duration counts as expired. */
function isExpired({ spec }: Lease, nowMs: number): boolean {
  if (spec?.renewTime === undefined || spec.leaseDurationSeconds === undefined) return true;
  return Date.parse(spec.renewTime) + spec.leaseDurationSeconds * 1000 < nowMs;
}
