/** Machine config before the host process runs: at boot and during installation. */
import { createDirectoryWatch, createDisk, createHostFiles } from '../../io/machineconfig/index.ts';
import { createHostUnits, systemdRuns } from '../../io/systemd/index.ts';
import { canonicalRoot } from '../config/settings.ts';

/** One line for the journal of the unit. Throws CodedErrors. */
export async function replayAtBoot(givenRoot: string | undefined): Promise<string> {
  const root = await canonicalRoot(givenRoot);
  await createHostFiles(createDisk(root), createDirectoryWatch(root)).open();
  // Units may be among the files, and systemd has read them before.
  if (root === '/' && (await systemdRuns())) await createHostUnits().daemonReload();
  return 'machine config: no change is interrupted any more';
}
