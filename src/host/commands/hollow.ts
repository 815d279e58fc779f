/** `hyperedge hollow`: simulated (hollow) nodes against any API server. */
import { createHollowNodes } from '../../kubelet/hollow/hollow.ts';
import { openClient } from '../process/api-access.ts';
import { runUntilSignal } from '../process/component.ts';
import { systemClock as clock, createProcessLog, systemRandom as random } from '../process/process.ts';

export interface HollowFlags {
  readonly kubeconfig: string;
  readonly nodes: number;
  readonly prefix: string;
  readonly zones: number;
  readonly logLevel: number | undefined;
}

/** Runs until a signal, then deletes the nodes. Resolves with the exit code. */
export function runHollow({ kubeconfig, logLevel, ...options }: HollowFlags): Promise<number> {
  const log = createProcessLog('hollow', logLevel ?? 2);
  return runUntilSignal(log, async () => {
    const access = await openClient(kubeconfig, 'hollow-node/hyperedge', { clock, random, log });
    const informers = access.newInformers();
    const hollow = createHollowNodes({ client: access.client, informers, log, clock }, options);
    await hollow.start();
    log.info('hollow nodes ready', { nodes: options.nodes });
    return {
      patienceMs: 60_000,
      stop: async () => {
        await hollow.stop();
        await informers.stop();
        await access.close();
      },
    };
  });
}
