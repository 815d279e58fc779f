/** Stops the host process with all its pods, and removes their links, rules, mounts and cgroups from the host. */

import { existsSync } from 'node:fs';
import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toUid, type Uid } from '../../base/brand.ts';
import { adding, counting, type Progress } from '../../base/command-line/progress.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { countText } from '../../base/text/count-text.ts';
import {
  type CgroupPath,
  directoryName,
  kubepodsPath,
  podPath,
  qosPath,
  rootComponents,
  sliceName,
} from '../../kubelet/core/cgroups/names.ts';
import { createMounter } from '../../kubelet/io/host-facts/index.ts';
import { createServiceManager } from '../../kubelet/io/systemd/index.ts';
import { readHostNetworkRecord, removeHostNetwork } from '../../network/pods/io/index.ts';
import { resolvedLinks } from '../config/data-links.ts';
import type { Settings } from '../config/settings.ts';
import { callControl } from '../control/control.ts';
import { networkRecordOf } from '../network/host-network.ts';
import { chooseCgroupDriver } from '../node/cgroup-driver.ts';
import { startRuntime } from '../node/runtime.ts';
import { useHelpers } from '../process/helper-programs.ts';
import { SERVICE } from './layout.ts';
import { systemctl, systemdRuns } from './service.ts';

const GRACE_S = 10;
const QOS = ['Guaranteed', 'Burstable', 'BestEffort'] as const;
const EXIT_MS = 60_000;

/**
 * Stops the host process and removes its pods. Objects that cannot be removed are reported as notes. Throws
 * CodedErrors.
 */
export async function stopEverything(settings: Settings, progress: Progress): Promise<void> {
  await stopHostProcess(settings);
  progress.step('the host process has stopped');
  await removeTraces(settings, progress);
}

/** Removes the remains of pods and their network after the host process has stopped. */
export async function removeTraces(settings: Settings, progress: Progress): Promise<void> {
  const helpers = await useHelpers(settings);
  const cgroupDriver = (await chooseCgroupDriver(settings)).name;
  const serviceManager = cgroupDriver === 'systemd' ? createServiceManager() : undefined;
  const note = (what: string) => (error: unknown) => progress.note(`${what}: ${messageOf(error)}`);
  // Instances on a machine share the kubepods cgroups. Only pods with a directory below this root belong to this
  // instance.
  const uids = (await readdir(join(settings.paths.volumes, 'pods')).catch(() => [])).map(toUid);
  try {
    const host = await startRuntime({
      settings,
      cgroupDriver,
      serviceManager,
      helpers,
      log: silentLog,
      reservedPorts: () => [],
    });
    const sandboxes = await host.runtime.listPodSandboxes();
    for (const container of await host.runtime.listContainers())
      await host.runtime.stopContainer(container.id, GRACE_S).catch(note(`container ${container.name}`));
    await counting(progress, 'removal', 'pods', async (onProgress) => {
      const add = adding(sandboxes.length, onProgress);
      for (const { id } of sandboxes) {
        await host.runtime.stopPodSandbox(id).catch(note(`sandbox ${id}`));
        await host.runtime.removePodSandbox(id).catch(note(`sandbox ${id}`));
        add(1);
      }
    });
    await host.stop({ keepPods: false });
    progress.step(sandboxes.length === 0 ? 'no pods are left' : `removed ${countText(sandboxes.length, 'pod')}`);
  } catch (error) {
    note('pods')(error);
  }
  await removeNetwork(settings, progress).catch(note('network'));
  const mounter = createMounter();
  for (const path of [settings.paths.containers, settings.paths.volumes, settings.paths.run])
    await unmountBelow(mounter, path).catch(note(path));
  await removeCgroups(settings, uids, cgroupDriver, serviceManager).catch(note('cgroups'));
}

/**
 * Removes links, routes and nftables tables of this host. If an earlier release left no record of them, their names are
 * derived from the settings.
 */
async function removeNetwork(settings: Settings, progress: Progress): Promise<void> {
  const { networkRecord, networkState } = settings.paths;
  const record = await readHostNetworkRecord(networkRecord);
  if (record === undefined && !existsSync(networkState)) return;
  for (const each of await removeHostNetwork(record ?? networkRecordOf(settings))) progress.note(each);
  progress.step('links, routes and packet filter rules are removed');
}

/**
 * Stops the host process, whether it runs as a unit or was started manually. Before it exits, it ends its pods in their
 * order.
 */
async function stopHostProcess(settings: Settings): Promise<void> {
  const answered = await callControl(settings.paths.controlSocket, 'POST', '/end-pods').then(
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

/**
 * Unmounts everything below a directory. The directory itself may be a mount point of the administrator, which is kept.
 */
async function unmountBelow(mounter: ReturnType<typeof createMounter>, path: string): Promise<void> {
  const directory = await resolvedLinks(path);
  for (const name of await readdir(directory).catch(() => [])) await mounter.unmountTree(join(directory, name));
}

/**
 * Removes the cgroups of this root's pods. Then removes the cgroups of the QoS classes and kubepods, unless pods of
 * another instance are in them.
 */
async function removeCgroups(
  { cgroup }: Settings,
  uids: readonly Uid[],
  driver: 'systemd' | 'cgroupfs',
  serviceManager: ReturnType<typeof createServiceManager> | undefined,
): Promise<void> {
  const mounts = await cgroupMounts();
  const root = rootComponents(cgroup.root);
  const at = (path: CgroupPath): string[] => mounts.map((mount) => join(mount, directoryName(driver, path)));
  for (const uid of uids)
    for (const path of QOS.map((qos) => podPath(root, qos, uid))) {
      if (at(path).some((each) => existsSync(each))) await serviceManager?.stop(sliceName(path));
      for (const directory of at(path)) await removeEmpty(directory);
    }
  for (const path of [qosPath(root, 'BestEffort'), qosPath(root, 'Burstable'), kubepodsPath(root)]) {
    const inUse = await Promise.all(at(path).map(hasChildren));
    if (inUse.includes(true)) continue;
    await serviceManager?.stop(sliceName(path));
    for (const directory of at(path)) await rmdir(directory).catch(ignore('a cgroup in use is kept'));
  }
}

async function hasChildren(directory: string): Promise<boolean> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.some((entry) => entry.isDirectory());
}

async function cgroupMounts(): Promise<string[]> {
  return (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').flatMap((line) => {
    const type = line.split(' - ')[1]?.split(' ')[0];
    return type === 'cgroup' || type === 'cgroup2' ? [line.split(' ')[4] ?? ''] : [];
  });
}

/** Removes a cgroup with its children, children first. A cgroup with processes of other instances is kept. */
async function removeEmpty(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory()) await removeEmpty(join(directory, entry.name));
  await rmdir(directory).catch(ignore('a cgroup with processes of other instances is kept'));
}
