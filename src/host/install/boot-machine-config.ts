/** Machine config before the host process runs: at boot and during installation. */

import { systemdRuns } from '../../kubelet/io/systemd/index.ts';
import { applyServedConfig } from '../../openshift/machine-config/daemon/index.ts';
import { createHostUnits } from '../../openshift/machine-config/io/host-units.ts';
import { canonicalRoot, type Settings } from '../config/settings.ts';
import { machineConfigParts } from '../openshift/machine-config-daemon.ts';

/** Resolves with one line for the journal of the unit. Throws CodedErrors. */
export async function replayAtBoot(givenRoot: string | undefined): Promise<string> {
  const root = await canonicalRoot(givenRoot);
  const { files } = machineConfigParts({ root });
  await files.open();
  // Units may be among the files, and systemd has already read them.
  if (root === '/' && (await systemdRuns())) await createHostUnits().daemonReload();
  return 'machine config: no change is interrupted any more';
}

/**
 * Applies the response of a machine config server as the first config of a host that does not run yet. Resolves with
 * its name. Throws CodedErrors of one line and then changes nothing.
 */
export const applyServed = (settings: Pick<Settings, 'root' | 'machineConfig'>, answer: string): Promise<string> =>
  applyServedConfig(answer, machineConfigParts(settings));
