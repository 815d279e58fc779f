/** Controllers and scheduler on a real API server, each with its real identity. Nodes and kubelets are simulated. */
import type { Node, Pod } from '../../src/api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../src/api/meta/object.ts';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { loadSigningKey, signToken } from '../../src/apiserver/authentication/jwt.ts';
import { createLog, type Log, silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import {
  type ApiClient,
  createApiClient,
  createEventRecorder,
  createInformerFactory,
  createLeaderElector,
  type InformerFactory,
  type ResourceClient,
} from '../../src/client/index.ts';
import { CONTROLLERS_LEASE, type ControllersOptions } from '../../src/controllers/framework/deps.ts';
import { type Controllers, createControllers } from '../../src/host/controllers/controllers.ts';
import { machineConfigFacts } from '../../src/host/controllers/machine-config.ts';
import { routerFacts } from '../../src/host/controllers/router-facts.ts';
import { systemClock as clock, systemRandom as random } from '../../src/host/process/process.ts';
import type { MachineProvisioner } from '../../src/openshift/machines/machines-port.ts';
import { createCatalogFiles } from '../../src/openshift/operators/olm/io/index.ts';
import { createCertificateSigner, loadAuthority } from '../../src/pki/index.ts';
import type { SchedulerDeps } from '../../src/scheduler/deps.ts';
import { createScheduler, SCHEDULER_LEASE, type Scheduler } from '../../src/scheduler/index.ts';
import { startServer, type TestServer } from '../apiserver/harness.ts';

/** Nodes of these tests do not report. They would become unreachable during a test file on a slow machine. */
const SILENT_NODES = { nodeMonitorGracePeriodMs: 3_600_000, nodeStartupGracePeriodMs: 3_600_000 };

export interface ControlPlane {
  readonly api: TestServer;
  /** Client with the identity system:admin. */
  readonly admin: ApiClient;
  readonly controllers: Controllers;
  readonly scheduler: Scheduler;
  readonly log: Log;
  of<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T>;
  clientAs(name: string, ...groups: string[]): Promise<ApiClient>;
  addNode(name: string, change?: (node: Node) => void): Promise<void>;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  readonly controllers?: Partial<ControllersOptions>;
  /** Whether pods on nodes start and terminate automatically. Default true. */
  readonly kubelets?: boolean;
  readonly logLevel?: number;
  /** Existing server, which is not stopped. Default: a separate one. */
  readonly api?: TestServer;
  /** Data published for joining hosts. Default: none. */
  readonly clusterFacts?: { readonly publicUrl: string; readonly settings: Readonly<Record<string, string>> };
  /** Hosts and the store, for machines. Default: none. */
  readonly machines?: MachineProvisioner;
  /** Directory of operator catalogs. Default: none. */
  readonly catalogs?: string;
  /** Whether certificates of services are issued. Default false. */
  readonly router?: boolean;
  /** Whether the console of the API server gets a route. Requires `router`. Default false. */
  readonly console?: boolean;
  /** Configuration of the scheduler, and the caller of its extenders. */
  readonly scheduler?: Pick<SchedulerDeps, 'settings' | 'extenders'>;
  /** Clock of the controllers. Default: the system's. */
  readonly clock?: Clock;
  /** Identity in the leases. Default 'test'. */
  readonly identity?: string;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const log =
    options.logLevel === undefined
      ? silentLog
      : createLog({
          component: 'test',
          level: options.logLevel,
          sink: { write: (line) => console.error(line) },
          nowMs: () => Date.now(),
        });
  const api = options.api ?? (await startServer());
  const closing: (() => Promise<void>)[] = [];
  const clientAs = async (name: string, ...groups: string[]): Promise<ApiClient> => {
    const pair = await api.user(name, ...groups);
    const client = createApiClient({
      server: api.url,
      ca: api.ca.certPem,
      cert: pair.certPem,
      key: pair.keyPem,
      userAgent: `${name.split(':').at(-1) ?? name}/test`,
      log,
      clock,
    });
    closing.push(() => client.close());
    return client;
  };
  const admin = await clientAs('system:admin', 'system:masters');
  const manager = await clientAs('system:kube-controller-manager');
  const binder = await clientAs('system:kube-scheduler');
  const informers = createInformerFactory({ client: manager, log, clock, random });
  const elector = (client: ApiClient, lease: { namespace: string; name: string }) =>
    createLeaderElector({ client, ...lease, identity: options.identity ?? 'test', clock, random, log });
  const recorder = (client: ApiClient, component: string) =>
    createEventRecorder({ client, component, clock, random, log });
  const managerEvents = recorder(manager, 'controllers');
  const binderEvents = recorder(binder, 'default-scheduler');
  const controllers = createControllers({
    client: manager,
    informers,
    recorder: managerEvents,
    elector: elector(manager, CONTROLLERS_LEASE),
    log: log.named('controllers'),
    clock: options.clock ?? clock,
    random,
    signer: createCertificateSigner(loadAuthority(api.ca.certPem, api.ca.keyPem)),
    rootCaPem: api.ca.certPem,
    signServiceAccountToken: (claims) => signToken(loadSigningKey(api.tokenKey), claims),
    machineConfig: machineConfigFacts(),
    ...(options.clusterFacts === undefined
      ? {}
      : { clusterFacts: { ...options.clusterFacts, caPem: api.ca.certPem, kubeletCaPem: api.ca.certPem } }),
    ...(options.machines === undefined ? {} : { machines: options.machines }),
    options: { namespaceGraceMs: 0, ...SILENT_NODES, ...options.controllers },
    ...(options.catalogs === undefined
      ? {}
      : { catalogFiles: createCatalogFiles({ directory: options.catalogs, findImage: async () => undefined }) }),
    ...(options.router === true
      ? {
          router: routerFacts(
            { domain: 'apps.lab.example', hasConsole: options.console === true },
            loadAuthority(api.ca.certPem, api.ca.keyPem),
          ),
        }
      : {}),
  });
  const scheduler = createScheduler({
    client: binder,
    informers,
    recorder: binderEvents,
    elector: elector(binder, SCHEDULER_LEASE),
    log: log.named('scheduler'),
    clock,
    random,
    ...options.scheduler,
  });
  await controllers.start();
  await scheduler.start();
  const played = createInformerFactory({ client: admin, log, clock, random });
  if (options.kubelets !== false) await playKubelets(admin, played);
  return {
    api,
    admin,
    controllers,
    scheduler,
    log,
    of: (type) => admin.resource(type),
    clientAs,
    addNode: (name, change) => addNode(admin, name, change),
    stop: async () => {
      await Promise.all([controllers.stop(), scheduler.stop()]);
      await Promise.all([managerEvents.stop(), binderEvents.stop()]);
      await Promise.all([informers.stop(), played.stop()]);
      await Promise.all(closing.map((close) => close()));
      if (options.api === undefined) await api.stop();
    },
  };
}

async function addNode(admin: ApiClient, name: string, change: ((node: Node) => void) | undefined): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+/, '');
  const node: Node = {
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now, lastTransitionTime: now },
      ],
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
    },
  };
  change?.(node);
  const nodes = admin.resource(resources.nodes);
  await nodes.create(node);
  await nodes.patch(name, undefined, 'merge', { status: node.status }, { subresource: 'status' });
}

/** Bound pods become Ready with an address. Deleted ones end immediately. The image `broken` never starts. */
async function playKubelets(admin: ApiClient, informers: InformerFactory): Promise<void> {
  const client = admin.resource(resources.pods);
  const pods = informers.informer(resources.pods);
  let address = 1;
  const act = async (pod: Pod): Promise<void> => {
    const { name = '', namespace, uid, deletionTimestamp } = pod.metadata ?? {};
    try {
      if (deletionTimestamp !== undefined) {
        await client.delete(name, namespace, {
          gracePeriodSeconds: 0,
          ...(uid === undefined ? {} : { preconditions: { uid } }),
        });
        return;
      }
      if ((pod.spec?.nodeName ?? '') === '' || (pod.status?.phase ?? 'Pending') !== 'Pending') return;
      if (pod.spec?.containers[0]?.image === 'broken') return;
      const ip = `10.128.${address >> 8}.${address++ & 255}`;
      await client.patch(
        name,
        namespace,
        'strategic',
        {
          status: {
            phase: 'Running',
            podIP: ip,
            podIPs: [{ ip }],
            conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }],
          },
        },
        { subresource: 'status' },
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) console.error('played kubelet', error);
    }
  };
  pods.onChange({ added: (pod) => void act(pod), updated: (pod) => void act(pod) });
  await informers.startAndSync();
}

/** Waits until `check` returns a value. Fails with its last error or result. */
export async function eventually<T>(
  check: () => Promise<T | undefined | false>,
  what: string,
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last: unknown = 'nothing';
  for (;;) {
    try {
      const value = await check();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
