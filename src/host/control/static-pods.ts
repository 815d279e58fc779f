/**
 * The control plane as static pods (OKD 3.11 "Master components as static pods"). Each pod runs a sub-command of this
 * executable. It uses the host's network and the host's root file system, in which only its volumes are writable.
 */
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isNode, parseDocument } from 'yaml';
import type { Container, Pod, Probe } from '../../api/generated/core/v1.ts';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { HOST_ROOT_IMAGE } from '../../api/podspec/host-root-image.ts';
import { replace } from '../../openshift/revisions/io/index.ts';
import { readSchedule } from '../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { rewriteGenerated, writeGenerated } from '../config/generated-file.ts';
import type { Settings } from '../config/settings.ts';
import type { OwnPorts } from '../network/own-ports.ts';
import { packaged, selfCommand } from '../process/assets.ts';
import { diagnosticsBelow } from '../process/diagnostics.ts';

/** File names of the manifests, as in OKD. */
export const MANIFESTS = { etcd: 'etcd.yaml', api: 'apiserver.yaml', controllers: 'controller.yaml' } as const;

interface HostDirectory {
  readonly name: string;
  /** Path in the pod. It is also the path on the host, unless `source` is given. */
  readonly path: string;
  readonly source?: string;
  readonly writable?: boolean;
  /** Whether the kubelet creates a missing directory. */
  readonly orCreate?: boolean;
}

/**
 * Writes the manifests of this host's roles and removes the manifests of other roles. Manifests that an administrator
 * has edited are kept. Resolves with their paths.
 */
export async function writeStaticPods(
  settings: Settings,
  assets: string | undefined,
  ports: OwnPorts,
): Promise<string[]> {
  const master = settings.roles.has('master');
  const wanted = new Map<string, Pod | undefined>([
    [
      MANIFESTS.etcd,
      ownsStore(settings) ? etcdPod(settings, assets, ports.etcd, await snapshotsOf(settings)) : undefined,
    ],
    [MANIFESTS.api, master ? apiPod(settings, assets, ports.api) : undefined],
    [MANIFESTS.controllers, master ? controllersPod(settings, assets, ports.controllers) : undefined],
  ]);
  const kept: string[] = [];
  for (const [file, pod] of wanted) {
    const path = join(settings.paths.staticPods, file);
    if (pod === undefined) await rm(path, { force: true });
    else if ((await writeGenerated(path, pod)) === 'kept') {
      await setOwnExecutable(path);
      kept.push(path);
    }
  }
  return kept;
}

/**
 * Updates the executable's path in an edited manifest. The rest of the manifest is kept, but an update may remove the
 * old executable.
 */
async function setOwnExecutable(path: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  const own = withExecutable(text, selfCommand());
  if (own !== text) await replace(path, Buffer.from(own), 0o600);
}

const COMPONENTS: ReadonlySet<unknown> = new Set(Object.keys(MANIFESTS));

/** Replaces the executable in the manifest of a control-plane pod; other texts are returned unchanged. */
export function withExecutable(text: string, executable: readonly string[]): string {
  return rewriteGenerated(text, (body) => {
    const document = parseDocument(body);
    const path = ['spec', 'containers', 0, 'command'];
    const command = document.errors.length === 0 ? nodeValue(document.getIn(path)) : undefined;
    if (!Array.isArray(command) || !COMPONENTS.has(command.at(-1))) return body;
    const wanted = [...executable, command.at(-1)];
    if (JSON.stringify(command) === JSON.stringify(wanted)) return body;
    document.setIn(path, wanted);
    return document.toString({ lineWidth: 0 });
  });
}

const nodeValue = (node: unknown): unknown => (isNode(node) ? node.toJSON() : undefined);

/**
 * Directory of snapshots from which a damaged store is restored; undefined if that is disabled. A changed schedule
 * applies at the next start of the host process.
 */
async function snapshotsOf({ restoreDamaged, paths }: Settings): Promise<string | undefined> {
  if (!restoreDamaged) return undefined;
  // An unreadable schedule is ignored here, because the snapshot schedule logs it.
  const schedule = await readSchedule(paths.snapshotSchedule, paths.snapshots).catch(() => undefined);
  return schedule?.directory ?? paths.snapshots;
}

function etcdPod(
  settings: Settings,
  assets: string | undefined,
  ports: readonly ReservedPort[],
  snapshots: string | undefined,
): Pod {
  const directory = dirname(settings.paths.etcdConfig);
  return controlPlanePod(assets, {
    component: 'etcd',
    diagnostics: diagnosticsBelow(settings.root),
    address: settings.nodeIp,
    ports,
    args: [
      ...['--config', settings.paths.etcdConfig, '--env', settings.paths.masterEnv, '--root', settings.root],
      ...(snapshots === undefined ? [] : ['--snapshots', snapshots]),
      ...['--update-record', settings.paths.updateRecord],
    ],
    directories: [
      // The directory is mounted instead of the socket, because each start of the host process creates a new socket.
      { name: 'agent', path: dirname(settings.paths.agentSocket) },
      { name: 'etcd-config', path: directory, ...activeDirectory(settings, 'etcd', 'etcd') },
      {
        name: 'master-config',
        path: dirname(settings.paths.masterEnv),
        ...activeDirectory(settings, 'etcd', 'master'),
      },
      { name: 'etcd-data', path: settings.paths.etcdData, writable: true },
      ...(snapshots === undefined ? [] : [{ name: 'snapshots', path: snapshots, orCreate: true }]),
      { name: 'update', path: dirname(settings.paths.updateRecord), orCreate: true },
    ],
    livenessProbe: { tcpSocket: { host: '127.0.0.1', port: settings.ports.etcd } },
    memory: '48Mi',
    graceSeconds: 10,
  });
}

function apiPod(settings: Settings, assets: string | undefined, ports: readonly ReservedPort[]): Pod {
  const get = (path: string): Probe => ({
    httpGet: { host: '127.0.0.1', scheme: 'HTTPS', port: settings.ports.api, path },
  });
  return controlPlanePod(assets, {
    component: 'api',
    diagnostics: diagnosticsBelow(settings.root),
    address: settings.nodeIp,
    ports,
    args: ['--config', settings.paths.masterConfig, '--env', settings.paths.masterEnv, '--root', settings.root],
    directories: [
      {
        name: 'master-config',
        path: dirname(settings.paths.masterConfig),
        ...activeDirectory(settings, 'api', 'master'),
      },
      { name: 'master-logs', path: settings.paths.masterLogs, writable: true },
      { name: 'releases', path: settings.paths.releases, orCreate: true },
      { name: 'catalogs', path: settings.paths.catalogs, orCreate: true },
    ],
    livenessProbe: get('/livez'),
    readinessProbe: get('/readyz'),
    memory: '64Mi',
    graceSeconds: 15,
  });
}

function controllersPod(settings: Settings, assets: string | undefined, ports: readonly ReservedPort[]): Pod {
  return controlPlanePod(assets, {
    component: 'controllers',
    diagnostics: diagnosticsBelow(settings.root),
    ports,
    args: ['--config', settings.paths.masterConfig, '--env', settings.paths.masterEnv, '--root', settings.root],
    directories: [
      { name: 'agent', path: dirname(settings.paths.agentSocket), orCreate: true },
      {
        name: 'master-config',
        path: dirname(settings.paths.masterConfig),
        ...activeDirectory(settings, 'controllers', 'master'),
      },
      // The Machine controller needs both directories: the store's authority, which it encrypts for new masters, and a
      // place for SSH keys while ssh runs.
      ...(ownsStore(settings) ? [{ name: 'etcd-config', path: dirname(settings.paths.etcdConfig) }] : []),
      { name: 'ssh', path: join(settings.paths.run, 'ssh'), writable: true, orCreate: true },
      // Catalogs and images are mounted explicitly, because they may be on their own file systems.
      { name: 'catalogs', path: settings.paths.catalogs, orCreate: true },
      { name: 'images', path: settings.paths.images, orCreate: true },
    ],
    livenessProbe: {
      httpGet: { host: '127.0.0.1', scheme: 'HTTPS', port: settings.ports.controllers, path: '/healthz' },
    },
    memory: '48Mi',
    graceSeconds: 10,
  });
}

/**
 * Source of a mounted configuration directory: on masters, the files of the revision in use. Hosts without the master
 * role have no revisions.
 */
const activeDirectory = (
  { paths, roles }: Settings,
  component: 'etcd' | 'api' | 'controllers',
  directory: 'master' | 'etcd',
): { source?: string } => (roles.has('master') ? { source: join(paths.staticPodResources, component, directory) } : {});

/** Order of shutdown: the controllers stop before the API server, and the API server before the store. */
const STOP_STAGE = { controllers: 1, api: 2, etcd: 3 } as const;

/**
 * Thresholds of glibc's malloc. With fixed thresholds, short-lived large buffers become separate mappings; otherwise
 * they fragment the heap, so that it cannot return memory to the system.
 */
const MALLOC = [
  { name: 'MALLOC_MMAP_THRESHOLD_', value: String(1 << 20) },
  { name: 'MALLOC_TRIM_THRESHOLD_', value: String(4 << 20) },
] as const;

/**
 * As in kubeadm's manifests. The limit is high, because a restart on a host without free CPU time makes a slow
 * component even slower.
 */
const LIVENESS_FAILURES = 8;

/**
 * CPU requests. They determine the share of a component when pods use all processors. With lower requests, a pod that
 * requests the rest of the host delays each request to the API server by seconds.
 */
const CPU_REQUESTS = { etcd: '150m', api: '200m', controllers: '100m' } as const;

interface ComponentPod {
  readonly diagnostics: string;
  readonly component: 'etcd' | 'api' | 'controllers';
  /** Host ports, declared in the pod for schedulers and other tools. */
  readonly ports: readonly ReservedPort[];
  readonly args: readonly string[];
  readonly directories: readonly HostDirectory[];
  readonly livenessProbe: Probe;
  readonly readinessProbe?: Probe;
  /** Memory request, as a quantity. */
  readonly memory: string;
  readonly graceSeconds: number;
  /** Address in an annotation of the pod. A change of the address changes the pod, so the kubelet restarts it. */
  readonly address?: string;
}

function controlPlanePod(assets: string | undefined, spec: ComponentPod): Pod {
  const directories = [
    ...spec.directories,
    { name: 'diagnostics', path: spec.diagnostics, writable: true, orCreate: true },
    ...programDirectories(assets),
  ];
  const probe = (given: Probe, delaySeconds: number): Probe => ({
    ...given,
    initialDelaySeconds: delaySeconds,
    periodSeconds: 10,
    timeoutSeconds: 10,
  });
  const container: Container = {
    name: spec.component,
    image: HOST_ROOT_IMAGE,
    imagePullPolicy: 'Never',
    command: [...selfCommand(), spec.component],
    args: [...spec.args],
    env: [...MALLOC],
    ports: spec.ports.map(({ protocol, port }) => ({ containerPort: port, hostPort: port, protocol })),
    resources: { requests: { cpu: CPU_REQUESTS[spec.component], memory: spec.memory } },
    livenessProbe: { ...probe(spec.livenessProbe, 20), failureThreshold: LIVENESS_FAILURES },
    ...(spec.readinessProbe === undefined
      ? {}
      : { readinessProbe: { ...probe(spec.readinessProbe, 0), periodSeconds: 5 } }),
    volumeMounts: directories.map(({ name, path, writable }) => ({
      name,
      mountPath: path,
      ...(writable === true ? {} : { readOnly: true }),
    })),
    securityContext: { readOnlyRootFilesystem: true },
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `master-${spec.component}`,
      namespace: 'kube-system',
      labels: { 'openshift.io/component': spec.component, 'openshift.io/control-plane': 'true' },
      annotations: {
        'scheduler.alpha.kubernetes.io/critical-pod': '',
        'hyperedge.dev/stop-stage': String(STOP_STAGE[spec.component]),
        ...(spec.address === undefined ? {} : { 'hyperedge.dev/advertised-address': spec.address }),
      },
    },
    spec: {
      hostNetwork: true,
      restartPolicy: 'Always',
      priorityClassName: 'system-node-critical',
      terminationGracePeriodSeconds: spec.graceSeconds,
      containers: [container],
      volumes: directories.map(({ name, path, source, orCreate }) => ({
        name,
        hostPath: { path: source ?? path, ...(orCreate === true ? { type: 'DirectoryOrCreate' } : {}) },
      })),
    },
  };
}

/**
 * Directories of the executable's unpacked files. They may be on other file systems than the root, so they are mounted
 * explicitly.
 */
function programDirectories(assets: string | undefined): HostDirectory[] {
  return packaged && assets !== undefined ? [{ name: 'assets', path: assets }] : [];
}
