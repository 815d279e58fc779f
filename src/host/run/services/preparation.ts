/** Services that start before this host has an API client: lock, settings, container runtime and files. */

import type { ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import { createCgroupFileSystem } from '../../../kubelet/io/cgroupfs/index.ts';
import { createServiceManager } from '../../../kubelet/io/systemd/index.ts';
import { checkPrivateFiles } from '../../certificates/private-files.ts';
import type { Settings } from '../../config/settings.ts';
import { openSubmittedPods } from '../../control/submitted-pods.ts';
import { keepMountOrder } from '../../install/mount-drop-in.ts';
import { isPortKept } from '../../network/balancer.ts';
import { allPorts, ownPorts } from '../../network/own-ports.ts';
import { checkPorts, runningComponents } from '../../network/port-check.ts';
import { chooseCgroupDriver } from '../../node/cgroup-driver.ts';
import { startRuntime } from '../../node/runtime.ts';
import { replayMachineConfig } from '../../openshift/machine-config-daemon.ts';
import { prepareRevisions } from '../../openshift/revisions.ts';
import { openAssets } from '../../process/assets.ts';
import { useHelpers } from '../../process/helper-programs.ts';
import { systemClock as clock } from '../../process/process.ts';
import { checkStorePresent, recordCluster } from '../cluster-identity.ts';
import { openDiskReserve } from '../disk-reserve.ts';
import { takeInstanceLock } from '../instance-lock.ts';
import { settingsOnceJoined } from '../once-joined.ts';
import { installHost } from '../prepare-files.ts';
import { openTrustedTime } from '../trusted-time.ts';
import { type HostService, hostService } from './values.ts';

export const preparation: readonly HostService[] = [
  hostService({
    name: 'diskReserve',
    needs: [],
    start: (_, { given, log }) => openDiskReserve(given.paths.diskReserve, clock, log.named('disk')),
  }),
  hostService({
    name: 'instanceLock',
    needs: ['diskReserve'],
    start: (_, { given }) => takeInstanceLock(given.paths.pidFile, given.root),
    stop: (lock) => lock.release(),
  }),
  hostService({
    name: 'settings',
    needs: ['instanceLock'],
    start: (_, { given, log, progress, reload, signal }) =>
      settingsOnceJoined({ settings: given, log, progress, reload, signal }),
  }),
  hostService({
    name: 'trustedTime',
    needs: ['settings'],
    start: ({ settings }, { log }) => openTrustedTime(settings.paths.timeFloor, log.named('clock')),
  }),
  hostService({
    name: 'machineConfigReplay',
    needs: ['settings'],
    start: ({ settings }, { log }) => replayMachineConfig(settings, log.named('machine-config')),
  }),
  hostService({
    name: 'privateFiles',
    needs: ['settings', 'machineConfigReplay'],
    start: ({ settings }) => checkPrivateFiles(settings),
  }),
  hostService({ name: 'cgroups', needs: ['settings'], start: () => createCgroupFileSystem() }),
  hostService({
    name: 'cgroupDriver',
    needs: ['settings'],
    start: ({ settings }) => chooseCgroupDriver(settings),
  }),
  hostService({
    name: 'programs',
    needs: ['settings'],
    start: async ({ settings }) => {
      const [assets, helpers] = await Promise.all([openAssets(), useHelpers(settings)]);
      return { assets: assets.directory, helpers };
    },
  }),
  hostService({
    name: 'serviceManager',
    needs: ['cgroupDriver'],
    start: ({ cgroupDriver }) => (cgroupDriver.name === 'systemd' ? createServiceManager() : undefined),
  }),
  hostService({
    name: 'reservedPorts',
    needs: ['settings'],
    start: ({ settings }, { log }) => {
      let ports: readonly ReservedPort[] = [];
      return {
        current: () => ports,
        read: async () => {
          ports = allPorts(await ownPorts(settings, log));
        },
      };
    },
  }),
  hostService({
    name: 'runtime',
    needs: ['settings', 'privateFiles', 'cgroupDriver', 'serviceManager', 'reservedPorts', 'programs'],
    start: ({ settings, cgroupDriver, serviceManager, reservedPorts, programs }, { log }) =>
      startRuntime({
        settings,
        cgroupDriver: cgroupDriver.name,
        serviceManager,
        helpers: programs.helpers,
        log,
        reservedPorts: () => reservedPorts.current(),
      }),
    stop: (runtime, { keepPods }) => runtime.stop({ keepPods }),
  }),
  hostService({
    name: 'portCheck',
    needs: ['settings', 'runtime'],
    start: async ({ settings, runtime }) => {
      const kept = (await isPortKept(settings)) ? ['kube-system/balancer-keeper'] : [];
      await checkPorts(settings, new Set([...(await runningComponents(runtime)), ...kept]));
      await checkStorePresent(settings);
    },
  }),
  hostService({
    name: 'files',
    needs: ['settings', 'trustedTime', 'cgroupDriver', 'programs', 'portCheck', 'reservedPorts'],
    start: async ({ settings, trustedTime, cgroupDriver, programs, reservedPorts }, { log, progress }) => {
      progress.step(`node ${settings.nodeName} at ${settings.nodeIp}; ${cgroupDriver.why}`);
      const { assets } = programs;
      const install = (current: Settings) =>
        installHost(current, { nowMs: trustedTime.nowMs(), cgroupDriver: cgroupDriver.name, assets, log });
      const report = await install(settings);
      await keepMountOrder(settings, log);
      await reservedPorts.read();
      for (const path of report.kept) progress.note(`${path} was edited and is kept`);
      progress.step(
        report.issued.length === 0
          ? 'certificates and configuration are in place'
          : `${report.issued.length} certificates and keys issued below ${settings.root}`,
      );
      return { install: async (current) => void (await install(current)) };
    },
  }),
  hostService({
    name: 'submittedPods',
    needs: ['settings', 'files'],
    start: ({ settings }, { log }) =>
      openSubmittedPods(settings.paths.submittedPods, {
        nodeName: settings.nodeName,
        clock,
        log: log.named('manifests'),
      }),
  }),
  hostService({
    name: 'revisions',
    needs: ['settings', 'runtime', 'files'],
    start: ({ settings, runtime }, { log }) => prepareRevisions(settings, runtime, log),
  }),
  hostService({
    name: 'clusterRecord',
    needs: ['settings', 'files'],
    start: ({ settings }, { signal, log }) => ({ recorded: recordCluster(settings, signal, log.named('cluster')) }),
  }),
];
