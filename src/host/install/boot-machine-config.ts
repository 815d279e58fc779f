/** Machine config operations while the host process does not run: at boot and during installation. */

import { systemdRuns } from '../../kubelet/io/systemd/index.ts';
import { applyServedConfig } from '../../openshift/machine-config/daemon/index.ts';
import { createHostUnits } from '../../openshift/machine-config/io/host-units.ts';
import { canonicalRoot } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { machineConfigParts } from '../openshift/machine-config-daemon.ts';

/**
 * Completes or undoes an interrupted change of the machine config. Resolves with one line for the journal of the unit.
 * Throws CodedErrors.
 */
export async function replayAtBoot(givenRoot: string | undefined): Promise<string> {
  const root = await canonicalRoot(givenRoot);
  const { files } = machineConfigParts({ root });
  await files.open();
  // A unit file may have changed after systemd had read it at boot.
  if (root === '/' && (await systemdRuns())) await createHostUnits().daemonReload();
  return 'machine config: no change is interrupted any more';
}

/**
 * Applies the response of a machine config server as the first config of a host whose host process has never run.
 * Resolves with the name of the config. Throws CodedErrors of one line; then no file has changed.
 */
export const applyServed = (settings: Pick<Settings, 'root' | 'machineConfig'>, answer: string): Promise<string> =>
  applyServedConfig(answer, machineConfigParts(settings));
