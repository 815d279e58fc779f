/** Test environment with a real kubelet on runc, cgroups, mounts and TLS. Only the API is in memory. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { toNodeName } from '../../src/base/brand.ts';
import { createLog, type Log, silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import type { LastKnown } from '../../src/client/index.ts';
import {
  type ApiAccess,
  createKubelet,
  DEFAULT_KUBELET_CONFIG,
  type Kubelet,
  type KubeletConfig,
  type KubeletDeps,
} from '../../src/kubelet/index.ts';
import { createCgroupFileSystem } from '../../src/kubelet/io/cgroupfs/index.ts';
import { createKubeletFiles } from '../../src/kubelet/io/files/index.ts';
import {
  createFileWatch,
  createHostFacts,
  createMounter,
  hostLogs,
  watchPath,
} from '../../src/kubelet/io/host-facts/index.ts';
import { listenKubelet } from '../../src/kubelet/io/kubelet-listener.ts';
import { createCsiConnector } from '../../src/kubelet/io/plugins/csi-driver.ts';
import { createRegistrationSockets } from '../../src/kubelet/io/plugins/plugin-registration.ts';
import { probeNetwork } from '../../src/kubelet/io/probing/index.ts';
import { createStreamingServer } from '../../src/kubelet/io/streaming/server.ts';
import { createVolumeTools } from '../../src/kubelet/io/volume-tools/volume-tools.ts';
import { createBridgeNetwork } from '../../src/network/pods/io/index.ts';
import { createAuthority, issue, lifetimeFrom } from '../../src/pki/index.ts';
import { trees } from '../../src/runtime/directory-removal/index.ts';
import { createImageStore } from '../../src/runtime/images/index.ts';
import { createOciRuntime, type OciRuntime } from '../../src/runtime/oci/runtime.ts';
import { writeBusyboxArchive } from '../conformance/busybox-image.ts';

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const IMAGE = 'lab.local/busybox:1';
export const NODE = 'lab-node';

export interface KubeletLab {
  readonly directory: string;
  readonly cgroup: string;
  readonly manifests: string;
  readonly kubelet: () => Kubelet;
  readonly runtime: () => OciRuntime;
  readonly logLines: string[];
  /** Function that is awaited before each unmount. A test delays it to make the release of volumes slow. */
  beforeUnmount: () => Promise<void>;
  /** Starts the kubelet on the existing state, like a new process. */
  boot(api?: ApiAccess, lastKnown?: LastKnown): Promise<void>;
  /** Call after `halt`: stops running containers and removes state that a reboot clears. */
  loseRunningState(): Promise<void>;
  /** Stops this kubelet and its runtime client. Pods continue to run. */
  halt(): Promise<void>;
  get(
    path: string,
    as?: 'admin' | 'nobody' | 'bearer-reader',
    method?: string,
  ): Promise<{ code: number; body: string }>;
  /** Runs a command over a WebSocket until it ends. `input` is its standard input. */
  exec(path: string, input: string): Promise<{ stdout: string; stderr: string; error: string }>;
  /** Response to a rejected upgrade. */
  execStatus(path: string, as: 'admin' | 'nobody' | 'bearer-reader'): Promise<{ code: number }>;
  cleanUp(): Promise<void>;
}

export async function createKubeletLab(
  overrides: Partial<KubeletConfig> = {},
  login?: KubeletDeps['login'],
  /** Runtime to use instead of the embedded one. */
  remote?: KubeletDeps['runtime'],
): Promise<KubeletLab> {
  const directory = await mkdtemp(join(tmpdir(), 'kubelet-lab-'));
  const cgroup = `kubelet-test-${randomBytes(4).toString('hex')}`;
  const manifests = join(directory, 'manifests');
  await mkdir(manifests);
  const images = createImageStore({ root: join(directory, 'images'), trees, log: silentLog });
  const archive = join(directory, 'busybox.tar');
  await writeBusyboxArchive(archive, IMAGE);
  await images.importArchive(archive);

  const validity = lifetimeFrom(Date.now(), 1);
  const authority = await createAuthority('lab-ca', validity);
  const serving = await issue(authority, {
    subject: { commonName: NODE },
    usages: ['server'],
    names: { dns: [], ips: ['127.0.0.1'] },
    validity,
  });
  const admin = await issue(authority, {
    subject: { commonName: 'admin', organizations: ['admins'] },
    usages: ['client'],
    validity,
  });

  const logLines: string[] = [];
  const log: Log = createLog({
    component: 'kubelet',
    level: 4,
    sink: {
      write: (line) => {
        logLines.push(line);
        if (process.env['KUBELET_LAB_LOG'] !== undefined) process.stderr.write(`${line}\n`);
      },
    },
    nowMs: Date.now,
  });
  const config: KubeletConfig = {
    ...DEFAULT_KUBELET_CONFIG,
    nodeName: toNodeName(NODE),
    nodeIps: ['127.0.0.1'],
    paths: {
      volumes: join(directory, 'volumes'),
      podLogs: join(directory, 'logs/pods'),
      containerLogs: join(directory, 'logs/containers'),
      staticPods: manifests,
      images: join(directory, 'images'),
    },
    listen: { address: '127.0.0.1', port: 0 },
    cgroupRoot: `/${cgroup}`,
    seccompProfileRoot: join(directory, 'seccomp'),
    ...overrides,
  };
  await mkdir(config.paths.images, { recursive: true });
  const mounter = createMounter();
  const mounts: typeof mounter = {
    ...mounter,
    unmountTree: async (target) => {
      await lab.beforeUnmount();
      await mounter.unmountTree(target);
    },
  };
  let runtime: OciRuntime;
  let kubelet: Kubelet;
  const streaming = createStreamingServer({ clock: realClock, log: silentLog });
  const suffix = randomBytes(3).toString('hex');
  const cidr = `10.${200 + ((randomBytes(1)[0] ?? 0) % 50)}.${randomBytes(1)[0]}.0/24`;
  const network = createBridgeNetwork({
    stateDirectory: join(directory, 'network'),
    bridge: `kl-${suffix}`,
    clusterCidrs: [cidr],
    serviceCidrs: ['172.30.0.0/16'],
    reservedPorts: () => [],
    nftTable: `kl-${suffix}`,
    log: silentLog,
  });
  await network.setPodCidrs([cidr]);

  const lab: KubeletLab = {
    directory,
    cgroup,
    manifests,
    logLines,
    beforeUnmount: async () => {},
    kubelet: () => kubelet,
    runtime: () => runtime,
    async boot(api, lastKnown) {
      runtime = createOciRuntime({
        stateRoot: join(directory, 'state'),
        runRoot: join(directory, 'run'),
        images,
        network,
        trees,
        watchPath,
        cgroupDriver: 'cgroupfs',
        clock: realClock,
        log: silentLog,
      });
      await runtime.start();
      kubelet = createKubelet({
        config,
        runtime: remote ?? runtime,
        cgroups: createCgroupFileSystem(),
        slices: undefined,
        login,
        host: createHostFacts({ root: '/', nowMs: Date.now }),
        files: createKubeletFiles(mounts),
        fileWatch: createFileWatch(),
        hostLogs: { logs: hostLogs({ directory: '/var/log' }), units: new Map() },
        mounts,
        volumes: {
          tools: createVolumeTools({ createdVolumes: join(directory, 'created-volumes'), log: silentLog }),
          connectCsi: createCsiConnector({ clock: realClock, log: silentLog }),
          registrations: createRegistrationSockets({ clock: realClock, log: silentLog }),
        },
        trees,
        listen: listenKubelet,
        streaming,
        probeNetwork,
        api,
        lastKnown,
        servingCertificate: async () => ({ cert: serving.certPem, key: serving.keyPem }),
        clientCa: async () => authority.certPem,
        clock: realClock,
        random: { random: Math.random, uuid: () => crypto.randomUUID(), bytes: (length) => new Uint8Array(length) },
        log,
      });
      await kubelet.start();
    },
    async halt() {
      await kubelet.stop();
      await runtime.stop();
    },
    async loseRunningState() {
      for (const name of await readdir('/proc')) {
        if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
        const [command, groups] = await Promise.all(
          ['cmdline', 'cgroup'].map((file) => readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '')),
        );
        if (command?.includes(directory) !== true && groups?.includes(cgroup) !== true) continue;
        try {
          process.kill(Number(name), 'SIGKILL');
        } catch {
          // The process has already ended.
        }
      }
      await mounts.unmountTree(directory);
      await rm(join(directory, 'run'), { recursive: true, force: true });
    },
    get(path, as = 'admin', method = 'GET') {
      return new Promise((resolve, reject) => {
        const call = request(
          {
            host: '127.0.0.1',
            port: kubelet.port,
            path,
            method,
            ca: authority.certPem,
            agent: false,
            ...(as === 'admin' ? { cert: admin.certPem, key: admin.keyPem } : {}),
            ...(as === 'bearer-reader' ? { headers: { authorization: 'Bearer good' } } : {}),
          },
          (response) => {
            let body = '';
            response.setEncoding('utf8');
            response.on('data', (chunk: string) => {
              body += chunk;
            });
            response.on('end', () => resolve({ code: response.statusCode ?? 0, body }));
          },
        );
        call.on('error', reject);
        call.end();
      });
    },
    exec(path, input) {
      return new Promise((resolve, reject) => {
        const socket = new WebSocket(`wss://127.0.0.1:${kubelet.port}${path}`, 'v5.channel.k8s.io', {
          ca: authority.certPem,
          cert: admin.certPem,
          key: admin.keyPem,
        });
        const channels = ['', '', '', ''];
        socket.on('open', () => {
          socket.send(Buffer.concat([Buffer.from([0]), Buffer.from(input)]));
        });
        socket.on('message', (data: Buffer) => {
          const channel = data[0] ?? 0;
          channels[channel] = (channels[channel] ?? '') + data.subarray(1).toString();
        });
        socket.on('close', () =>
          resolve({ stdout: channels[1] ?? '', stderr: channels[2] ?? '', error: channels[3] ?? '' }),
        );
        socket.on('error', reject);
      });
    },
    execStatus(path, as) {
      return new Promise((resolve, reject) => {
        const socket = new WebSocket(`wss://127.0.0.1:${kubelet.port}${path}`, 'v5.channel.k8s.io', {
          ca: authority.certPem,
          ...(as === 'admin' ? { cert: admin.certPem, key: admin.keyPem } : {}),
          ...(as === 'bearer-reader' ? { headers: { authorization: 'Bearer good' } } : {}),
        });
        socket.on('unexpected-response', (_request, response) => {
          response.resume();
          resolve({ code: response.statusCode ?? 0 });
        });
        socket.on('open', () => {
          socket.close();
          resolve({ code: 101 });
        });
        socket.on('error', reject);
      });
    },
    async cleanUp() {
      await kubelet?.stop();
      for (const sandbox of await runtime.listPodSandboxes()) {
        await runtime.stopPodSandbox(sandbox.id);
        await runtime.removePodSandbox(sandbox.id);
      }
      await runtime.stop();
      await streaming.stop();
      await network.destroy();
      await mounts.unmountTree(directory);
      for (const root of [
        '/sys/fs/cgroup',
        ...(await readdir('/sys/fs/cgroup')).map((each) => join('/sys/fs/cgroup', each)),
      ]) {
        await removeCgroups(join(root, cgroup));
      }
      await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
  return lab;
}

async function removeCgroups(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeCgroups(join(path, entry.name));
  await rmdir(path).catch(() => {});
}

/** Waits until a condition holds. Fails with the last observed value. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 15_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`not in ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}
