/** Revisions of the control plane on a master: connects files, containers and the API. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ignore } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createEventRecorder, createLeaderElector } from '../../client/index.ts';
import type { Kubelet } from '../../kubelet/index.ts';
import { HostRevisions, OPERANDS, type Operand } from '../../openshift/revisions/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { MANIFESTS } from '../control/static-pods.ts';
import { balancerUrl } from '../network/balancer-url.ts';
import { runningComponents } from '../network/port-check.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { CONTAINERS, operandFiles } from './revision-inputs.ts';
import { operandProcess } from './revision-process.ts';

const LEASE = { namespace: 'kube-system', name: 'hyperedge-revisions' } as const;
/** Image name in the status of installer pods. No container is created from it. */
const IMAGE = 'hyperedge.local/installer';
/** Times of the leader election. They are short, because the leader creates only a few objects at a time. */
const LEASE_MS = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 500 };

export interface ControlPlaneRevisions {
  /** Connects the revisions to the API. Returns a function that disconnects them. */
  start(kubelet: Pick<Kubelet, 'forgetBackOff'>): Promise<() => Promise<void>>;
  /** Installs changed files as a new revision immediately. Called before a requested restart of a component. */
  adoptNow(component: string): Promise<void>;
  /**
   * Runs `work`, which may write manifests. If a manifest has changed, its component restarts with the current files.
   */
  around(work: () => Promise<void>): Promise<void>;
}

const NONE: ControlPlaneRevisions = {
  start: async () => async () => {},
  adoptNow: async () => {},
  around: (work) => work(),
};

/** Prepares the revisions. Called after the files of the host are written and before the kubelet starts. */
export async function prepareRevisions(
  settings: Settings,
  runtime: HostRuntime,
  hostLog: Log,
): Promise<ControlPlaneRevisions> {
  if (!settings.roles.has('master')) return NONE;
  const log = hostLog.named('revisions');
  let kubelet: Pick<Kubelet, 'forgetBackOff'> | undefined;
  const revisions = new HostRevisions({
    node: settings.nodeName,
    files: operandFiles(settings),
    process: (operand) => operandProcess({ settings, runtime, kubelet: () => kubelet, component: CONTAINERS[operand] }),
    clock,
    log,
  });
  const operandsOf = (component: string): Operand[] => OPERANDS.filter((each) => CONTAINERS[each] === component);
  const running = await runningComponents(runtime);
  await revisions.prepare(new Set(OPERANDS.filter((each) => running.has(`kube-system/${CONTAINERS[each]}`))));
  const adoptNow = (component: string): Promise<void> => revisions.adoptNow(operandsOf(component));
  return {
    adoptNow,
    async around(work) {
      const manifests = (): Promise<string[]> =>
        Promise.all(
          Object.values(MANIFESTS).map((file) =>
            readFile(join(settings.paths.staticPods, file), 'utf8').catch(() => ''),
          ),
        );
      const before = await manifests();
      await work();
      const after = await manifests();
      for (const [index, component] of Object.keys(MANIFESTS).entries())
        if (before[index] !== after[index]) await adoptNow(component);
    },
    async start(present) {
      kubelet = present;
      const context = { clock, random, log };
      // The client uses the balancer, because a new revision restarts the API server of this host.
      const { adminKubeconfig } = masterFiles(settings.root);
      const api = await openClient(adminKubeconfig, 'hyperedge-revisions', context, balancerUrl(settings));
      const informers = api.newInformers();
      const recorder = createEventRecorder({ client: api.client, component: 'revisions', ...context });
      const electors = new Set<ReturnType<typeof createLeaderElector>>();
      revisions.start({
        client: api.client,
        informers,
        image: IMAGE,
        recorder,
        exclusively: async (work) => {
          const identity = settings.nodeName;
          const elector = createLeaderElector({
            client: api.client,
            ...LEASE,
            ...LEASE_MS,
            identity,
            clock,
            random,
            log,
          });
          electors.add(elector);
          try {
            await elector.run(() => work(api.client.fenced(elector.fence)));
          } finally {
            electors.delete(elector);
          }
        },
      });
      void informers.startAndSync().catch(ignore('only stopping rejects; informers log and retry their own errors'));
      return async () => {
        await Promise.all([...electors].map((elector) => elector.stop()));
        await revisions.stop();
        await recorder.stop();
        await informers.stop();
        await api.close();
      };
    },
  };
}
