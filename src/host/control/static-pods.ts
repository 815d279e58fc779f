/**
 * The control plane as static pods (OKD 3.11 "Master components as static pods"). Each runs a sub-command of this
 * executable, in the host's own root read-only, on the host's network, with write access only to its volumes.
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

/** OKD's names for the manifest files. */
export const MANIFESTS = { etcd: 'etcd.yaml', api: 'apiserver.yaml', controllers: 'controller.yaml' } as const;

interface HostDirectory {
  readonly name: string;
  /** Path in the pod; also on the host if there is no `source`. */
  readonly path: string;
  readonly source?: string;
  readonly writable?: boolean;
  /** Created if it is missing. */
  readonly orCreate?: boolean;
}

/**
 * Writes the manifests of this host's roles and removes those of other roles. Resolves with the edited manifests, which
 * are kept.
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

/** An edited manifest survives updates, but the executable in it may be removed by one, so it is replaced. */
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
 * The snapshot directory of the store's fallback; undefined if disabled. A changed schedule applies at the next start
 * of the host.
 */
async function snapshotsOf({ restoreDamaged, paths }: Settings): Promise<string | undefined> {
  if (!restoreDamaged) return undefined;
  // The snapshot schedule logs an unreadable file itself.
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
      // The directory instead of the socket, because each host process creates a new socket.
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
      // For Machines: the store's authority is encrypted for masters, and keys of hosts are in files while ssh runs.
      ...(ownsStore(settings) ? [{ name: 'etcd-config', path: dirname(settings.paths.etcdConfig) }] : []),
      { name: 'ssh', path: join(settings.paths.run, 'ssh'), writable: true, orCreate: true },
      // Operator catalogs may be on their own file systems.
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

/** Mounts the files of the current revision in place of a component's configuration. Other hosts have no revisions. */
const activeDirectory = (
  { paths, roles }: Settings,
  component: 'etcd' | 'api' | 'controllers',
  directory: 'master' | 'etcd',
): { source?: string } => (roles.has('master') ? { source: join(paths.staticPodResources, component, directory) } : {});

/** Shutdown order: clients stop before the API server, the API server before the store. */
const STOP_STAGE = { controllers: 1, api: 2, etcd: 3 } as const;

/**
 * Short-lived large buffers fragment the C library's heap, which then cannot return memory to the system. Fixed
 * thresholds allocate them as separate mappings.
 */
const MALLOC = [
  { name: 'MALLOC_MMAP_THRESHOLD_', value: String(1 << 20) },
  { name: 'MALLOC_TRIM_THRESHOLD_', value: String(4 << 20) },
] as const;

/** As kubeadm's manifests. A restart of a component that is only slow, on a host without free CPU, makes it slower. */
const LIVENESS_FAILURES = 8;

/**
 * CPU requests decide the share of a component while pods use all processors. With less, one pod that requests the rest
 * of a host makes each request to the API server take seconds.
 */
const CPU_REQUESTS = { etcd: '150m', api: '200m', controllers: '100m' } as const;

interface ComponentPod {
  readonly diagnostics: string;
  readonly component: 'etcd' | 'api' | 'controllers';
  /** Declared for schedulers and other tools. */
  readonly ports: readonly ReservedPort[];
  readonly args: readonly string[];
  readonly directories: readonly HostDirectory[];
  readonly livenessProbe: Probe;
  readonly readinessProbe?: Probe;
  /** Request for memory. */
  readonly memory: string;
  readonly graceSeconds: number;
  /** If present, the component advertises it and is restarted when it changes. */
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

/** Paths of the executable on other file systems than the root. */
function programDirectories(assets: string | undefined): HostDirectory[] {
  return packaged && assets !== undefined ? [{ name: 'assets', path: assets }] : [];
}
