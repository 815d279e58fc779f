/** Administration of this host through the kubelet's server. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, ifMissing } from '../../base/errors.ts';
import type { HostAdministration } from '../../kubelet/ports/administration-port.ts';
import { readSchedule } from '../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { callControl, RESTART_TIMEOUT_MS } from '../control/control.ts';
import { gatherOne } from '../doctor/gather.ts';
import { storeLevel } from '../openshift/updates.ts';
import { COMPONENTS } from '../process/component-names.ts';
import { runOwnCommand } from '../process/own-command.ts';
import { systemClock as clock } from '../process/process.ts';
import { ringNodes, storeMembers } from '../status/sources.ts';
import { RemoteRestarts, updateInProgress } from './restarts.ts';
import { RemoteSnapshots } from './snapshots.ts';
import { RemoteUploads } from './uploads.ts';

const STORE_MS = 3_500;
const SAVE_MS = 600_000;
const IMPORT_MS = 3_600_000;

export function hostAdministration(settings: Settings): HostAdministration {
  const { root, paths } = settings;
  const directory = paths.snapshots;
  const snapshots = new RemoteSnapshots({
    directory,
    schedule: () => readSchedule(paths.snapshotSchedule, directory),
    save: (signal) =>
      runOwnCommand(['snapshot', 'save', '--root', root, '--directory', directory, '-o', 'json'], signal, SAVE_MS),
  });
  const uploads = new RemoteUploads({
    directory: join(paths.images, 'uploads'),
    importFile: (file, { kind, name, force }, signal) => {
      const options = [...(name === undefined ? [] : [`--name=${name}`]), ...(force ? ['--force'] : [])];
      return runOwnCommand([kind, 'import', '--root', root, '-o', 'json', ...options, file], signal, IMPORT_MS);
    },
  });
  const restarts = new RemoteRestarts({
    components: COMPONENTS.filter((name) => (name === 'etcd' ? ownsStore(settings) : settings.roles.has('master'))),
    // Sends the request that `hyperedge master-restart` sends.
    restart: async (component) => {
      await callControl(paths.controlSocket, 'POST', `/restart/${component}`, RESTART_TIMEOUT_MS);
    },
    refusal: async () =>
      updateInProgress(await readFile(paths.updateRecord, 'utf8').catch(ifMissing(undefined)), paths.updateRecord),
    clock,
  });
  const withStore = (): void => {
    if (!ownsStore(settings)) throw new CodedError('absent', 'this host runs no member of the store');
  };
  let pending: Promise<object> | undefined;
  const gathered = async (): Promise<object> => {
    const [store, ring, level] = await Promise.all([
      gatherOne({ timeoutMs: STORE_MS, read: () => storeMembers(root) }),
      gatherOne({ timeoutMs: STORE_MS, read: () => ringNodes(paths.agentSocket) }),
      gatherOne({
        timeoutMs: STORE_MS,
        read: async () => {
          withStore();
          return storeLevel(settings);
        },
      }),
    ]);
    return { store, ring, level };
  };
  return {
    // Simultaneous requests share one report.
    store: () => {
      pending ??= gathered().finally(() => {
        pending = undefined;
      });
      return pending;
    },
    snapshots: async () => {
      withStore();
      return snapshots.report();
    },
    saveSnapshot: async () => {
      withStore();
      return snapshots.save();
    },
    savedBytes: () => snapshots.savedBytes(),
    openSnapshot: async (name) => {
      withStore();
      return snapshots.open(name);
    },
    uploadLimits: () => uploads.limits(),
    importUpload: async (upload, signal, onReceived) => {
      if (upload.kind === 'bundle' && !settings.roles.has('master'))
        throw new CodedError('absent', 'bundles are imported on masters; upload it to a master');
      return uploads.import(upload, signal, onReceived);
    },
    restarts: async () => restarts.report(),
    restart: (component) => restarts.start(component),
    stop: async () => {
      await Promise.all([snapshots.stop(), uploads.stop()]);
    },
  };
}
