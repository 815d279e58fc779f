/** The probes of this host's components, selected by its roles and settings. */
import { readFile } from 'node:fs/promises';
import type { HostProbe } from '../../api/kinds/nodes/nodes/host-report.ts';
import { CodedError } from '../../base/errors.ts';
import { directoryName, kubepodsPath, qosPath, rootComponents } from '../../kubelet/core/cgroups/names.ts';
import type { CgroupFileSystem } from '../../kubelet/core/cgroups/port.ts';
import {
  httpProbe,
  probeDirectories,
  probeDns,
  probeLink,
  probeTcp,
} from '../../openshift/operators/cluster-operators/io/index.ts';
import type { CommitStore, HostProbes, Probe, ProbeStore } from '../../openshift/operators/cluster-operators/port.ts';
import { nodeFiles } from '../../pki/index.ts';
import { clusterReport } from '../../store/administration/members.ts';
import type { EtcdAdmin } from '../../store/administration/port.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import type { CgroupDriver } from '../node/cgroup-driver.ts';
import { etcdAccess } from '../store/access.ts';

export interface ProbedHost {
  readonly settings: Settings;
  readonly cgroups: CgroupFileSystem;
  readonly driver: CgroupDriver;
  /** Whether the pod network uses the host's own bridge. False with CNI plug-ins, which have their own links. */
  readonly ownBridge: boolean;
  /** Fault of the pod network that could not be repaired; undefined if there is none. */
  readonly networkProblem: () => string | undefined;
}

const LOOPBACK = '127.0.0.1';
const DNS_PORT = 53;
const STORE_MS = 900;
const COMMIT_MS = 10_000;
const SERVICE_PORT = 443;
/** Whether a status shows that the server runs. A server that denies anonymous access to its health endpoint runs. */
const answers = (status: number): boolean => status < 400 || status === 401 || status === 403;

export function hostProbes({ settings, cgroups, driver, ownBridge, networkProblem }: ProbedHost): HostProbes {
  const { roles, ports, network, router, root } = settings;
  const { clientCa } = nodeFiles(root);
  const ca = (): Promise<string | undefined> => readFile(clientCa, 'utf8').catch(() => undefined);
  const local = (port: number, path: string): string => `https://${LOOPBACK}:${port}${path}`;
  const probes = new Map<HostProbe, Probe>();
  if (roles.has('master')) {
    probes.set('api', httpProbe({ url: local(ports.api, '/readyz'), ca, accept: answers }));
    probes.set('authentication', httpProbe({ url: local(ports.api, '/.well-known/oauth-authorization-server'), ca }));
    probes.set('controllers', httpProbe({ url: local(ports.controllers, '/healthz'), ca }));
  }
  if (ownsStore(settings)) probes.set('etcd', probeOwnMember(settings));
  const zone = network.clusterDomain.toLowerCase();
  probes.set('dns', probeDns(network.dnsIp, DNS_PORT, `kubernetes.default.svc.${zone}`, network.apiServiceIp));
  const service = probeTcp(network.apiServiceIp, SERVICE_PORT);
  const link = ownBridge ? probeLink(network.bridge) : undefined;
  probes.set('network', async (signal) => {
    const problem = networkProblem();
    if (problem !== undefined) throw new CodedError('pod-network', problem);
    await link?.(signal);
    await service(signal).catch((error: unknown) => {
      throw new CodedError('no-service', `service kubernetes at ${network.apiServiceIp} does not answer`, {
        cause: error,
      });
    });
  });
  if (router.enabled) {
    const quiet = !router.proxyProtocol && !router.accessLog;
    const url = `http://${LOOPBACK}:${router.httpPort}/`;
    probes.set('router', quiet ? httpProbe({ url, accept: () => true }) : probeTcp(LOOPBACK, router.httpPort));
  }
  let known: Promise<string[]> | undefined;
  probes.set(
    'slices',
    probeDirectories(() => {
      known ??= slices(settings, cgroups, driver).catch((error: unknown) => {
        known = undefined;
        throw error;
      });
      return known;
    }),
  );
  return probes;
}

/** Paths of the cgroups of kubepods and its QoS classes in every hierarchy with the memory controller. */
async function slices({ cgroup }: Settings, cgroups: CgroupFileSystem, driver: CgroupDriver): Promise<string[]> {
  const root = rootComponents(cgroup.root);
  const paths = [kubepodsPath(root), qosPath(root, 'Burstable'), qosPath(root, 'BestEffort')];
  const hierarchies = await cgroups.hierarchies();
  return hierarchies
    .filter(({ controllers }) => controllers.includes('memory'))
    .flatMap(({ mount }) => paths.map((path) => mount + directoryName(driver.name, path)));
}

/** Probe of this host's store member. It keeps its connection until a request fails. */
function probeOwnMember({ root, ports }: Settings): Probe {
  let admin: EtcdAdmin | undefined;
  return async () => {
    try {
      admin ??= (await etcdAccess({ root })).open([`https://${LOOPBACK}:${ports.etcd}`]);
      const { errors } = await admin.status(STORE_MS);
      if (errors.length > 0) throw new CodedError('alarm', errors.join('; '));
    } catch (error) {
      admin?.close();
      admin = undefined;
      if (error instanceof CodedError && error.code === 'alarm') throw error;
      throw new CodedError('unavailable', 'the member does not answer', { cause: error });
    }
  };
}

export const storeProbe =
  (root: string): ProbeStore =>
  async () => {
    const { members, quorum } = await clusterReport(await etcdAccess({ root }));
    return {
      quorum,
      leader: members.find(({ role }) => role === 'leader')?.name ?? '',
      members: members.map(({ name, state, role, errors }) => ({ name, state, learner: role === 'learner', errors })),
    };
  };

/**
 * Raises the level of the store through any member, which forwards the request to the leader. Resolves with whether the
 * newest level is reached.
 */
export const storeCommit =
  (root: string): CommitStore =>
  async () => {
    const admin = (await etcdAccess({ root })).open();
    try {
      const { level, supported } = await admin.raiseLevel(COMMIT_MS);
      return level >= supported;
    } finally {
      admin.close();
    }
  };
