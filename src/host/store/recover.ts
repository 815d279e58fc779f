/**
 * `hyperedge members recover`: the operation of the store with this host's data directory, clients and host process.
 */
import { resolve } from 'node:path';
import { planRecovery, type RecoveryDeps, type RecoveryPlan, recover } from '../../store/administration/recover.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { callControl } from '../control/control.ts';
import { systemClock as clock } from '../process/process.ts';
import { type EtcdAccessOptions, etcdAccess, ownEtcd } from './access.ts';
import { storeFiles } from './store-files.ts';

export type { RecoveryPlan, Survivor } from '../../store/administration/recover.ts';

export interface RecoverOptions extends EtcdAccessOptions {
  /** Data directory, if the store is not this host's. */
  readonly dataDir?: string | undefined;
}

/** Plans a recovery without changing anything. Throws CodedErrors with the data directory or the endpoint. */
export async function planMemberRecovery(options: RecoverOptions): Promise<RecoveryPlan> {
  return planRecovery(await depsOf(options));
}

/** Performs a plan of `planMemberRecovery` while the host process runs (`recover` in store/administration). */
export async function recoverMember(plan: RecoveryPlan, options: RecoverOptions): Promise<void> {
  const { controlSocket } = pathsBelow(await canonicalRoot(options.root));
  const hostProcess = {
    check: async () => void (await callControl(controlSocket, 'GET', '/status')),
    restart: async () => void (await callControl(controlSocket, 'POST', '/restart/etcd')),
  };
  await recover(plan, await depsOf(options), options.dataDir === undefined ? hostProcess : undefined);
}

async function depsOf(options: RecoverOptions): Promise<RecoveryDeps> {
  return {
    dataDirectory: resolve(options.dataDir ?? (await ownEtcd(options.root)).dataDirectory),
    files: storeFiles,
    open: async (clientUrls) =>
      (await etcdAccess(clientUrls === undefined ? options : { ...options, endpoints: clientUrls.join() })).open(),
    monotonicMs: () => clock.monotonicMs(),
  };
}
