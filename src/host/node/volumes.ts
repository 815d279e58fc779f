/** Dependencies of the kubelet's volumes on this host: CSI drivers, registration sockets and programs of the host. */

import { lstat, mkdir, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ignore } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { VolumeDeps } from '../../kubelet/index.ts';
import { createCsiConnector } from '../../kubelet/io/plugins/csi-driver.ts';
import { createRegistrationSockets } from '../../kubelet/io/plugins/plugin-registration.ts';
import { createVolumeTools } from '../../kubelet/io/volume-tools/volume-tools.ts';
import { resolvedLinks } from '../config/data-links.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';

export function volumeDeps({ paths }: Pick<Settings, 'paths'>, log: Log): VolumeDeps {
  const options = { clock, log: log.named('csi') };
  return {
    tools: createVolumeTools({ createdVolumes: paths.createdVolumes, log: log.named('volumes') }),
    connectCsi: createCsiConnector(options),
    registrations: createRegistrationSockets(options),
  };
}

/**
 * Links `/var/lib/kubelet`, the path in manifests of CSI drivers, to the kubelet's directory. Resolves with the link;
 * undefined if another program uses the path.
 */
export async function linkDriverRoot(root: string, volumes: string): Promise<string | undefined> {
  const link = driverRoot(root);
  await mkdir(dirname(link), { recursive: true });
  await symlink(volumes, link).catch(ignore('the obstacle is inspected below'));
  const found = await lstat(link).catch(() => undefined);
  if (found?.isSymbolicLink() !== true) return undefined;
  return (await resolvedLinks(link)) === volumes ? link : undefined;
}

/** Removes the link of `linkDriverRoot`, but no other file. */
export async function unlinkDriverRoot(root: string, volumes: string): Promise<void> {
  const link = driverRoot(root);
  if ((await lstat(link).catch(() => undefined))?.isSymbolicLink() === true && (await resolvedLinks(link)) === volumes)
    await rm(link);
}

const driverRoot = (root: string): string => join(root, 'var/lib/kubelet');
