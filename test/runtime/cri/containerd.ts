/** Debian's containerd in a temporary directory, for use inside a separate network namespace. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { silentLog } from '../../../src/base/log.ts';
import { type CriRuntime, createCriRuntime } from '../../../src/runtime/cri/runtime.ts';
import { createCriHost } from '../../../src/runtime/oci/cri-host.ts';
import { busyboxLayer, dockerArchive, writeBusyboxArchive } from '../../conformance/busybox-image.ts';
import type { RuntimeUnderTest } from '../../conformance/runtime.ts';
import { realClock } from '../oci/lab.ts';

const run = promisify(execFile);
const IMAGE = 'lab.local/busybox:1';
const PAUSE = 'lab.local/pause:1';
const PLUGINS = '/usr/lib/cni';

/** Reason why containerd cannot run here; undefined if it can. */
export function whyNoContainerd(): string | undefined {
  if (process.getuid?.() !== 0) return 'containerd needs root';
  if (!existsSync('/usr/bin/containerd')) return 'containerd is not installed: apt-get install containerd';
  if (!existsSync(join(PLUGINS, 'bridge')))
    return 'CNI plug-ins are not installed: apt-get install containernetworking-plugins';
  return undefined;
}

const config = (directory: string): string => `version = 2
root = "${directory}/root"
state = "${directory}/state"
[grpc]
  address = "${directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stats_collect_period = 1
  stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "${PLUGINS}"
  conf_dir = "${directory}/cni"
`;

const network = (directory: string): string =>
  JSON.stringify({
    cniVersion: '0.4.0',
    name: 'cri-lab',
    plugins: [
      {
        type: 'bridge',
        bridge: 'he-cri0',
        isGateway: true,
        ipam: {
          type: 'host-local',
          dataDir: `${directory}/addresses`,
          ranges: [[{ subnet: '10.131.7.0/24' }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'loopback' },
    ],
  });

export async function createContainerdLab(): Promise<RuntimeUnderTest & { readonly runtime: () => CriRuntime }> {
  const directory = await mkdtemp(join(tmpdir(), 'cri-lab-'));
  const cgroup = `/cri-test-${randomBytes(4).toString('hex')}`;
  await run('ip', ['link', 'set', 'lo', 'up']);
  await mkdir(join(directory, 'cni'));
  // Containers see mounts of the host only below a shared mount.
  await mkdir(join(directory, 'logs'));
  await run('mount', ['--bind', join(directory, 'logs'), join(directory, 'logs')]);
  await run('mount', ['--make-rshared', join(directory, 'logs')]);
  await writeFile(join(directory, 'cni/10-lab.conflist'), network(directory));
  await writeFile(join(directory, 'config.toml'), config(directory));
  const containerd: ChildProcess = spawn('/usr/bin/containerd', ['-c', join(directory, 'config.toml')], {
    stdio: ['ignore', 'ignore', process.env['CRI_LAB_LOG'] === undefined ? 'ignore' : 'inherit'],
  });
  const socket = join(directory, 'containerd.sock');
  const ctr = (...args: string[]) => run('ctr', ['-a', socket, '-n', 'k8s.io', ...args]);
  for (let tries = 0; tries < 200; tries += 1) {
    if (await ctr('version').catch(() => undefined)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const archive = join(directory, 'busybox.tar');
  await writeBusyboxArchive(archive, IMAGE);
  const pause = join(directory, 'pause.tar');
  const image = {
    tags: [PAUSE],
    layers: [await busyboxLayer()],
    config: { Cmd: ['/bin/sh', '-c', 'while true; do sleep 1 & wait; done'] },
  };
  await pipeline([await dockerArchive(image)], createWriteStream(pause));
  for (const each of [archive, pause]) await ctr('images', 'import', each);

  const connect = async (): Promise<CriRuntime> => {
    const made = createCriRuntime({
      endpoint: `unix://${socket}`,
      clock: realClock,
      log: silentLog,
      host: createCriHost(),
    });
    await made.start();
    return made;
  };
  let current = await connect();
  return {
    runtime: () => current,
    image: IMAGE,
    logRoot: join(directory, 'logs'),
    cgroupParent: (pod) => `${cgroup}/${pod}`,
    restart: async () => {
      await current.stop();
      current = await connect();
    },
    cleanUp: async () => {
      for (const { id } of await current.listPodSandboxes()) await current.removePodSandbox(id);
      await current.stop();
      const ended = new Promise((resolve) => containerd.once('exit', resolve));
      containerd.kill('SIGTERM');
      await ended;
      const mounted = (await run('cat', ['/proc/self/mountinfo'])).stdout
        .split('\n')
        .map((line) => line.split(' ')[4] ?? '')
        .filter((path) => path.startsWith(`${directory}/`));
      if (mounted.length > 0) await run('umount', ['--lazy', ...mounted.toReversed()]);
      for (const root of [
        '/sys/fs/cgroup',
        ...(await readdir('/sys/fs/cgroup')).map((each) => `/sys/fs/cgroup/${each}`),
      ])
        await removeTree(join(root, cgroup));
      await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

async function removeTree(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name));
  await rmdir(path).catch(() => {});
}
