/** `vip` of the bootstrap file: the masters' shared address, on the host that holds a Lease. */
import { networkInterfaces } from 'node:os';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createLeaderElector, type WriteFence } from '../../client/index.ts';
import { createSharedAddress } from '../../network/pods/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

/** Shorter than the controllers' durations, because clients without a balancer of their own wait for it. */
export const LEASE = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 1_000 } as const;
/**
 * Lifetime of the address in the kernel, which removes it if this process does not extend it. It ends before another
 * host can acquire the lease, so a stopped or killed holder has lost the address when the next one adds it.
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
        await pause(RETRY_MS, stopping.signal);
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

/** Runs until `stopping`, or until the address cannot be set. */
async function campaign(
  { root, nodeIp, nodeName }: VipSettings,
  vip: NonNullable<VipSettings['vip']>,
  stopping: AbortSignal,
  log: Log,
): Promise<void> {
  const link = vip.link ?? linkOf(nodeIp);
  if (link === undefined) throw new CodedError('no-link', `no link has ${nodeIp}; set vip.interface in bootstrap.yaml`);
  const shared = createSharedAddress({ address: vip.address, link, lifetimeSeconds: LIFETIME_SECONDS });
  // A killed holder may have left the address.
  await shared.remove();
  // Uses the API server of this host: if it does not answer, another host should have the address.
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
      await pause(EXTEND_MS, lost);
      if (lost.aborted) return;
      // A process that was suspended meanwhile must not restore the address.
      fence.check();
      await shared.extend();
    }
  } finally {
    await shared.remove();
    log.info('shared address released', about);
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
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
