/** Probes of this host and, on masters, the cluster operators with leader election. */
import type { NodeName } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../base/versions/version.ts';
import { Competition, createEventRecorder, createLeaderElector, type InformerFactory } from '../../client/index.ts';
import {
  type HostProber,
  runClusterOperator,
  startHostProber,
} from '../../openshift/operators/cluster-operators/index.ts';
import type { VerifyRelease } from '../../openshift/updates/releases-port.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { balancerUrl } from '../network/balancer-url.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { followCatalogs } from './catalog-copies.ts';
import { hostProbes, type ProbedHost, storeCommit, storeProbe } from './host-probes.ts';
import { mastersOf } from './updates.ts';

export interface OperatedHost extends ProbedHost {
  readonly nodeName: NodeName;
  readonly api: OpenedClient;
  readonly informers: InformerFactory;
  readonly verify: VerifyRelease;
  readonly log: Log;
}

const own = { version: PRODUCT_VERSION, kubernetes: KUBERNETES_VERSION.gitVersion } as const;
/** The lease that OpenShift uses. Its duration is long, because renewals write to flash memory. */
const LEASE = { namespace: 'openshift-cluster-version', name: 'version' } as const;
const LEASE_TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 12_000, retryPeriodMs: 5_000 } as const;

export async function startClusterOperators(
  host: OperatedHost,
): Promise<{ readonly prober: HostProber; stop(): Promise<void> }> {
  const { settings, nodeName, api } = host;
  const log = host.log.named('cluster-operators');
  const prober = startHostProber({ probes: hostProbes(host), nodeName, client: api.client, ...own, clock, log });
  if (!settings.roles.has('master')) return { prober, stop: async () => prober.stop() };
  const stopCatalogs = await followCatalogs({
    directory: settings.paths.catalogs,
    nodeName,
    client: api.client,
    informers: host.informers,
    masters: mastersOf(api, host.informers),
    log: log.named('catalogs'),
  });
  const stopLeading = await leadWhenElected(settings, nodeName, host.verify, log);
  return {
    prober,
    stop: async () => {
      prober.stop();
      stopCatalogs();
      await stopLeading();
    },
  };
}

async function leadWhenElected(
  settings: Settings,
  nodeName: NodeName,
  verify: VerifyRelease,
  log: Log,
): Promise<() => Promise<void>> {
  const { root, embedded, localVolumes } = settings;
  // The client uses the balancer, so that this host can lead while its own API server does not answer.
  const admin = await openClient(
    masterFiles(root).adminKubeconfig,
    'cluster-version-operator/hyperedge',
    { clock, random, log },
    balancerUrl(settings),
  );
  const { client } = admin;
  const recorder = createEventRecorder({ client, component: 'cluster-version-operator', clock, random, log });
  const competition = new Competition();
  const elector = createLeaderElector({
    client,
    ...LEASE,
    ...LEASE_TIMES,
    competition,
    identity: nodeName,
    clock,
    random,
    log,
  });
  const stop = runClusterOperator({
    client: client.fenced(elector.fence),
    newInformers: () => admin.newInformers(),
    elector,
    competition,
    recorder,
    probeStore: storeProbe(root),
    commitStore: storeCommit(root),
    verify,
    own,
    wanted: { storage: localVolumes, metrics: embedded.metrics },
    clock,
    log,
  });
  return async () => {
    await stop();
    await recorder.stop();
    await admin.close();
  };
}
