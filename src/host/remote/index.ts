/** Administration of this host for the kubelet's server. */
import { join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import type { HostAdministration } from '../../kubelet/administration-port.ts';
import { readSchedule } from '../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { gatherOne } from '../doctor/gather.ts';
import { runOwnCommand } from '../process/own-command.ts';
import { ringNodes, storeMembers } from '../status/sources.ts';
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
    importFile: (kind, file, name, signal) =>
      runOwnCommand(
        [kind, 'import', '--root', root, '-o', 'json', ...(name === undefined ? [] : [`--name=${name}`]), file],
        signal,
        IMPORT_MS,
      ),
  });
  let pending: Promise<object> | undefined;
  const gathered = async (): Promise<object> => {
    const [store, ring] = await Promise.all([
      gatherOne({ timeoutMs: STORE_MS, read: () => storeMembers(root) }),
      gatherOne({ timeoutMs: STORE_MS, read: () => ringNodes(paths.agentSocket) }),
    ]);
    return { store, ring };
  };
  const withStore = (): void => {
    if (!ownsStore(settings)) throw new CodedError('absent', 'this host has no member of the store');
  };
  return {
    // Requests that arrive together share one reading.
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
    stop: async () => {
      await Promise.all([snapshots.stop(), uploads.stop()]);
    },
  };
}
