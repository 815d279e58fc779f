/** The deploy directory of a master. */
import type { Log } from '../../base/log.ts';
import { createEventRecorder, createLeaderElector } from '../../client/index.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { ManifestDeployer } from '../manifests/deployer.ts';
import { createManifestDirectory } from '../manifests/io/manifest-directory.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

const LEASE = { namespace: 'kube-system', name: 'hyperedge-manifests' } as const;

/** Starts to apply the deploy directory of a master to the cluster. Returns a function that stops this. */
export async function deployManifests(settings: Settings, log: Log): Promise<() => Promise<void>> {
  const path = settings.embedded.manifests;
  if (path === undefined || !settings.roles.has('master')) return async () => {};
  const { nodeName: host } = settings;
  const api = await openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge-manifests', {
    clock,
    random,
    log,
  });
  const recorder = createEventRecorder({ client: api.client, component: 'manifests', host, clock, random, log });
  const electors = new Set<ReturnType<typeof createLeaderElector>>();
  const deployer = new ManifestDeployer({
    directory: createManifestDirectory(path, watchPath),
    host,
    // The lease is held only while files are applied, so that an unchanged directory causes no renewals.
    exclusively: async (work) => {
      const elector = createLeaderElector({ client: api.client, ...LEASE, identity: host, clock, random, log });
      electors.add(elector);
      try {
        await elector.run((signal) => work(api.client.fenced(elector.fence), signal));
      } finally {
        electors.delete(elector);
      }
    },
    recorder,
    clock,
    log,
  });
  deployer.start();
  return async () => {
    const stopped = deployer.stop();
    await Promise.all([...electors].map((elector) => elector.stop()));
    await stopped;
    await recorder.stop();
    await api.close();
  };
}
