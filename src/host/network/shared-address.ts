/** `vip` of the bootstrap file: the virtual address of the masters. The master that holds a Lease has the address. */
import { networkInterfaces } from 'node:os';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createLeaderElector, type WriteFence } from '../../client/index.ts';
import { createSharedAddress } from '../../network/pods/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

/**
 * The durations are shorter than those of the controllers, because clients outside of the cluster cannot connect until
 * another master has the address.
 */
export const LEASE = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 1_000 } as const;
/**
 * Lifetime of the address in the kernel. The kernel removes the address unless this process extends it. The lifetime
 * ends before another host can acquire the Lease, so a stopped or killed process never shares the address with the next
 * holder.
 */
export const LIFETIME_SECONDS = 2;
export const EXTEND_MS = 700;
export const RETRY_MS = 5_000;

export interface SharedAddressHolder {
  /** Removes the address, then releases the lease. */
  stop(): Promise<void>;
}

type VipSettings = Pick<Settings, 'nodeIp' | 'nodeName' | 'roles' | 'root' | 'vip'>;

export function holdSharedAddress(settings: VipSettings, log: Log): SharedAddressHolder {
  const { vip, roles } = settings;
  if (vip === undefined || !roles.has('master')) return { stop: async () => {} };
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await campaign(settings, vip, stopping.signal, log);
      } catch (error) {
        log.warn('shared address not held; retrying', { address: vip.address, error: messageOf(error) });
        await pauseUnlessAborted(RETRY_MS, stopping.signal);
      }
    }
  };
  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** Competes for the Lease until `stopping` is aborted. Throws if the address cannot be assigned. */
async function campaign(
  { root, nodeIp, nodeName }: VipSettings,
  vip: NonNullable<VipSettings['vip']>,
  stopping: AbortSignal,
  log: Log,
): Promise<void> {
  const link = vip.link ?? linkOf(nodeIp);
  if (link === undefined) throw new CodedError('no-link', `no link has ${nodeIp}; set vip.interface in bootstrap.yaml`);
  const shared = createSharedAddress({ address: vip.address, link, lifetimeSeconds: LIFETIME_SECONDS });
  // A killed process may have left the address on the link.
  await shared.remove();
  // The client uses the API server of this host. If it does not answer, another host must get the address.
  const { client, close } = await openClient(masterFiles(root).adminKubeconfig, 'hyperedge-vip', {
    clock,
    random,
    log,
  });
  const elector = createLeaderElector({
    client,
    namespace: 'kube-system',
    name: 'hyperedge-vip',
    identity: nodeName,
    clock,
    random,
    log,
    ...LEASE,
  });
  const onStop = (): void => void elector.stop();
  stopping.addEventListener('abort', onStop, { once: true });
  try {
    if (!stopping.aborted) await elector.run((lost) => hold(shared, elector.fence, lost, { ...vip, link }, log));
  } finally {
    stopping.removeEventListener('abort', onStop);
    await close();
  }
}

async function hold(
  shared: ReturnType<typeof createSharedAddress>,
  fence: WriteFence,
  lost: AbortSignal,
  about: { readonly address: string; readonly link: string },
  log: Log,
): Promise<void> {
  try {
    await shared.add();
    log.info('shared address acquired', about);
    while (!lost.aborted) {
      await pauseUnlessAborted(EXTEND_MS, lost);
      if (lost.aborted) return;
      // Throws if the Lease has expired. A process that was suspended must not extend the address.
      fence.check();
      await shared.extend();
    }
  } finally {
    await shared.remove();
    log.info('shared address released', about);
  }
}

export function pauseUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.setTimer(ms, done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}

export function linkOf(nodeIp: string): string | undefined {
  return Object.entries(networkInterfaces()).find(([, each]) => each?.some(({ address }) => address === nodeIp))?.[0];
}
