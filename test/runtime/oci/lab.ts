/**
 * A runtime with real dependencies in a temporary directory, for use inside a separate network namespace (netns.ts).
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { watchPath } from '../../../src/kubelet/io/host-facts/index.ts';
import { createBridgeNetwork } from '../../../src/network/pods/io/index.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore } from '../../../src/runtime/images/index.ts';
import type { OciRuntimeDeps } from '../../../src/runtime/oci/containers/context.ts';
import { createOciRuntime, type OciRuntime } from '../../../src/runtime/oci/runtime.ts';
import { writeBusyboxArchive } from '../../conformance/busybox-image.ts';
import type { RuntimeUnderTest } from '../../conformance/runtime.ts';

const run = promisify(execFile);

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export interface RuntimeLab extends RuntimeUnderTest {
  readonly runtime: () => OciRuntime;
  readonly directory: string;
}

export const BUSYBOX = 'lab.local/busybox:1';

export async function createRuntimeLab(overrides: Partial<OciRuntimeDeps> = {}): Promise<RuntimeLab> {
  const directory = await mkdtemp(join(tmpdir(), 'oci-lab-'));
  await run('ip', ['link', 'set', 'lo', 'up']);
  const cgroup = `/kubepods-test-${randomBytes(4).toString('hex')}`;
  const network = () =>
    createBridgeNetwork({
      stateDirectory: join(directory, 'network'),
      bridge: 'he-oci0',
      clusterCidrs: ['10.128.0.0/14'],
      serviceCidrs: ['172.30.0.0/16'],
      reservedPorts: () => [],
      nftTable: 'he-oci-pods',
      log: silentLog,
    });
  const images = createImageStore({ root: join(directory, 'images'), trees, log: silentLog });
  const archive = join(directory, 'busybox.tar');
  await writeBusyboxArchive(archive, BUSYBOX);
  await images.importArchive(archive);

  let current: OciRuntime;
  let currentNetwork = network();
  const boot = async (): Promise<void> => {
    currentNetwork = network();
    await currentNetwork.setPodCidrs(['10.128.2.0/23']);
    current = createOciRuntime({
      stateRoot: join(directory, 'state'),
      runRoot: join(directory, 'run'),
      images,
      network: currentNetwork,
      trees,
      watchPath,
      cgroupDriver: 'cgroupfs',
      clock: realClock,
      log: silentLog,
      ...overrides,
    });
    await current.start();
  };
  await boot();

  return {
    runtime: () => current,
    directory,
    image: BUSYBOX,
    logRoot: join(directory, 'logs'),
    cgroupParent: (pod) => `${cgroup}/${pod}`,
    restart: async () => {
      await current.stop();
      await boot();
    },
    cleanUp: async () => {
      for (const sandbox of await current.listPodSandboxes()) await current.removePodSandbox(sandbox.id);
      await current.stop();
      await currentNetwork.destroy();
      await removeCgroups(cgroup);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Removes the test's own cgroups from every hierarchy, innermost first. */
async function removeCgroups(name: string): Promise<void> {
  const remove = async (path: string): Promise<void> => {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) await remove(join(path, entry.name));
    await rmdir(path).catch(() => {});
  };
  const roots = ['/sys/fs/cgroup', ...(await readdir('/sys/fs/cgroup')).map((each) => join('/sys/fs/cgroup', each))];
  for (const root of roots) await remove(join(root, name));
}
