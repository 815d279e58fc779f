/** Machine config of this host: the daemon that applies files, units and kernel arguments of its pool. */

import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../client/index.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import { systemdRuns } from '../../kubelet/io/systemd/index.ts';
import type { ParsedIgnition } from '../../openshift/machine-config/core/ignition/index.ts';
import { DAEMON_LOG } from '../../openshift/machine-config/core/pools/daemon-set.ts';
import { createMachineConfigDaemon, type MachineConfigDaemon } from '../../openshift/machine-config/daemon/index.ts';
import { createDisk } from '../../openshift/machine-config/io/disk.ts';
import { createHostFiles } from '../../openshift/machine-config/io/host-files.ts';
import { createHostUnits } from '../../openshift/machine-config/io/host-units.ts';
import { createHostKernel } from '../../openshift/machine-config/io/kernel.ts';
import { createDirectoryWatch } from '../../openshift/machine-config/io/watch.ts';
import type { ImageStore, RegistryOptions } from '../../runtime/images/index.ts';
import { containersRegistries } from '../config/containers-registries.ts';
import { registryOptions } from '../config/registries.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import { withLogFile } from './machine-config-log.ts';

/**
 * Time limit for a node to become Ready after a change. It is shorter than upstream's, because these nodes do not
 * reboot.
 */
const READY_TIMEOUT_MS = 300_000;
const SETTLE_MS = 30_000;

export interface MachineConfigParts {
  readonly settings: Settings;
  readonly nodeName: NodeName;
  readonly informers: InformerFactory;
  /** Client with the node's own credentials. */
  readonly client: ApiClient;
  readonly recorder: EventRecorder;
  readonly images: ImageStore;
  readonly restartKubelet: () => Promise<void>;
  readonly log: Log;
}

/**
 * Completes or undoes a change that a power failure has interrupted. Called before any component reads the changed
 * files. Never throws.
 */
export async function replayMachineConfig({ root }: Settings, log: Log): Promise<void> {
  try {
    await machineConfigParts({ root }).files.open();
  } catch (error) {
    log.error('interrupted machine config not replayed', { error: messageOf(error) });
  }
}

/** Starts the daemon. systemd units and kernel arguments are changed only if the root is `/`. */
export async function startMachineConfig(parts: MachineConfigParts): Promise<MachineConfigDaemon> {
  const { settings, nodeName, informers, client, recorder, images, restartKubelet } = parts;
  const log = withLogFile(parts.log, join(settings.paths.run, DAEMON_LOG), () => clock.nowMs());
  const ownMachine = settings.root === '/';
  const daemon = createMachineConfigDaemon({
    nodeName,
    informers,
    client,
    recorder,
    ...machineConfigParts(settings),
    units: ownMachine && (await systemdRuns()) ? createHostUnits() : undefined,
    restartKubelet,
    reloadImages: async () => images.useRegistries(await withContainersRegistries(settings)),
    readyTimeoutMs: READY_TIMEOUT_MS,
    settleMs: SETTLE_MS,
    addresses: () => Object.values(networkInterfaces()).flatMap((link) => (link ?? []).map(({ address }) => address)),
    clock,
    log,
  });
  // The distribution's own files may have unsupported content. An error is logged, and the host starts without them.
  await withContainersRegistries(settings).then(
    (registries) => images.useRegistries(registries),
    (error: unknown) => log.warn('registries of /etc/containers not used', { error: messageOf(error) }),
  );
  await daemon.start();
  return daemon;
}

/**
 * Registry options of the host, merged with the files in /etc/containers. registries.yaml and the bootstrap file take
 * precedence. Throws CodedError 'bad-config'.
 */
async function withContainersRegistries(settings: Settings): Promise<RegistryOptions> {
  const [own, pool] = await Promise.all([registryOptions(settings), containersRegistries(settings.root)]);
  return {
    ...own,
    mirrors: { ...pool.mirrors, ...own.mirrors },
    insecureRegistries: [...own.insecureRegistries, ...pool.insecureRegistries],
  };
}

/** Access to the files and the boot loader below the root of a host. */
export function machineConfigParts({ root, machineConfig }: Pick<Settings, 'root'> & Partial<Settings>) {
  const disk = createDisk(root);
  return {
    files: createHostFiles(disk, createDirectoryWatch(root, watchPath)),
    kernel: createHostKernel(disk, { programs: root === '/' }),
    parse: {
      // The synchronous function does not block for long, because the input is small and limited.
      inflate: (bytes: Uint8Array, maxOutputLength: number): Uint8Array => gunzipSync(bytes, { maxOutputLength }),
      parsed: new WeakMap<object, ParsedIgnition>(),
      ...(machineConfig === undefined ? {} : { sshUser: machineConfig.sshUser }),
    },
  };
}
