/** Machine config of this host: files, units and kernel arguments as its pool says. */
import { gunzipSync } from 'node:zlib';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../client/index.ts';
import {
  createMachineConfigDaemon,
  type MachineConfigDaemon,
} from '../../components/openshift/machineconfigdaemon/index.ts';
import type { HostFiles } from '../../components/openshift/machineconfigdaemon/port.ts';
import type { ImageStore } from '../../io/images/index.ts';
import { createDirectoryWatch, createDisk, createHostFiles, createHostKernel } from '../../io/machineconfig/index.ts';
import { createHostUnits, systemdRuns } from '../../io/systemd/index.ts';
import { registryOptions } from '../config/registries.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process.ts';

/** Upstream's nodes get longer; these do not reboot. */
const READY_TIMEOUT_MS = 300_000;

export interface MachineConfigParts {
  readonly settings: Settings;
  readonly nodeName: string;
  readonly informers: InformerFactory;
  /** With the node's own credentials. */
  readonly client: ApiClient;
  readonly recorder: EventRecorder;
  readonly images: ImageStore;
  readonly restartKubelet: () => Promise<void>;
  readonly log: Log;
}

/** Finishes or undoes a change that a power cut has interrupted; before anything reads those files. Never throws. */
export async function replayMachineConfig({ root }: Settings, log: Log): Promise<void> {
  try {
    await hostFilesOf(root).open();
  } catch (error) {
    log.error('interrupted machine config not replayed', { error: messageOf(error) });
  }
}

/** Units and programs of this machine are touched only by a host whose root is the machine's own. */
export async function startMachineConfig(parts: MachineConfigParts): Promise<MachineConfigDaemon> {
  const { settings, nodeName, informers, client, recorder, images, restartKubelet, log } = parts;
  const ownMachine = settings.root === '/';
  const daemon = createMachineConfigDaemon({
    nodeName,
    informers,
    client,
    recorder,
    files: hostFilesOf(settings.root),
    units: ownMachine && (await systemdRuns()) ? createHostUnits() : undefined,
    kernel: createHostKernel(createDisk(settings.root), { programs: ownMachine }),
    parse: {
      // Bounded, and so small that a thread would cost more.
      inflate: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
      sshUser: settings.machineConfig.sshUser,
    },
    restartKubelet,
    reloadImages: async () => images.useRegistries(await registryOptions(settings)),
    readyTimeoutMs: READY_TIMEOUT_MS,
    clock,
    log,
  });
  await daemon.start();
  return daemon;
}

const hostFilesOf = (root: string): HostFiles => createHostFiles(createDisk(root), createDirectoryWatch(root));
