/** Stops the host process with all its pods, and takes what they used from the host: links, rules, mounts, cgroups. */
import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { createMounter } from '../../io/host/index.ts';
import { removeHostNetwork } from '../../io/links/index.ts';
import { createServiceManager } from '../../io/systemd/index.ts';
import type { Settings } from '../config/settings.ts';
import { useHelpers } from '../helpers.ts';
import { chooseCgroupDriver } from '../host/cgroup-driver.ts';
import { askControl } from '../host/control.ts';
import type { Progress } from '../host/progress.ts';
import { startRuntime } from '../host/runtime.ts';
import { SERVICE } from './layout.ts';
import { systemctl, systemdRuns } from './service.ts';

const GRACE_S = 10;
const EXIT_MS = 60_000;

/** Throws CodedErrors; what cannot be removed is a note. */
export async function stopEverything(settings: Settings, progress: Progress): Promise<void> {
  await stopHostProcess(settings);
  progress.step('the host process has stopped');
  await removeTraces(settings, progress);
}

/** What pods and their network leave on the host once the host process has stopped. */
export async function removeTraces(settings: Settings, progress: Progress): Promise<void> {
  const helpers = await useHelpers(settings);
  const driver = (await chooseCgroupDriver(settings)).name;
  const serviceManager = driver === 'systemd' ? createServiceManager() : undefined;
  const note = (what: string) => (error: unknown) => progress.note(`${what}: ${messageOf(error)}`);
  try {
    const host = await startRuntime(settings, driver, serviceManager, () => [], helpers, silentLog);
    const sandboxes = await host.runtime.listPodSandboxes();
    for (const container of await host.runtime.listContainers())
      await host.runtime.stopContainer(container.id, GRACE_S).catch(note(`container ${container.name}`));
    for (const { id } of sandboxes) {
      await host.runtime.stopPodSandbox(id).catch(note(`sandbox ${id}`));
      await host.runtime.removePodSandbox(id).catch(note(`sandbox ${id}`));
    }
    await host.stop({ keepPods: false });
    progress.step('all pods are removed');
  } catch (error) {
    note('pods')(error);
  }
  const { network } = settings;
  const left = await removeHostNetwork({
    bridge: network.bridge,
    nftTable: network.nftTable,
    clusterCidrs: network.clusterCidrs,
    serviceCidrs: network.serviceCidrs,
  });
  for (const each of left) progress.note(each);
  progress.step('links, routes and packet filter rules are removed');
  const mounter = createMounter();
  for (const path of [settings.paths.containers, settings.paths.volumes, settings.paths.run])
    await unmountBelow(mounter, path).catch(note(path));
  await removeCgroups(settings, driver, serviceManager).catch(note('cgroups'));
}

/** The unit's process, or one that was started by hand; it ends its pods in their order. */
async function stopHostProcess(settings: Settings): Promise<void> {
  const answered = await askControl(settings.paths.controlSocket, 'POST', '/end-pods').then(
    () => true,
    () => false,
  );
  const unit = settings.root === '/' && (await systemdRuns());
  if (unit) {
    await systemctl('stop', SERVICE).catch((error: unknown) => {
      if (!/not loaded/.test(messageOf(error))) throw error;
    });
  }
  const pid = Number((await readFile(settings.paths.pidFile, 'utf8').catch(() => '')).split(' ')[0]);
  if (!answered || !(pid > 0) || !isAlive(pid)) return;
  process.kill(pid, 'SIGTERM');
  for (const began = performance.now(); isAlive(pid); await sleep(100)) {
    if (performance.now() - began > EXIT_MS)
      throw new CodedError('in-use', `hyperedge run with pid ${pid} does not stop; end it, then try again`);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A mount point itself may be the administrator's. */
async function unmountBelow(mounter: ReturnType<typeof createMounter>, path: string): Promise<void> {
  for (const name of await readdir(path).catch(() => [])) await mounter.unmountTree(join(path, name));
}

/** The levels above the pods: kubepods and its QoS levels. */
async function removeCgroups(
  { cgroup }: Settings,
  driver: 'systemd' | 'cgroupfs',
  serviceManager: ReturnType<typeof createServiceManager> | undefined,
): Promise<void> {
  if (serviceManager !== undefined && cgroup.root === '/') {
    for (const slice of ['kubepods-besteffort.slice', 'kubepods-burstable.slice', 'kubepods.slice'])
      await serviceManager.stop(slice);
  }
  const name = driver === 'systemd' ? 'kubepods.slice' : 'kubepods';
  for (const mount of await cgroupMounts()) await removeEmpty(join(mount, cgroup.root, name));
}

async function cgroupMounts(): Promise<string[]> {
  return (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').flatMap((line) => {
    const type = line.split(' - ')[1]?.split(' ')[0];
    return type === 'cgroup' || type === 'cgroup2' ? [line.split(' ')[4] ?? ''] : [];
  });
}

/** Children first; a cgroup with processes of other instances stays. */
async function removeEmpty(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory()) await removeEmpty(join(directory, entry.name));
  await rmdir(directory).catch(() => {});
}
