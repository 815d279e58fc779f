/** All checks in the order of the report. */
import { certificateChecks } from './certificates.ts';
import type { Check } from './check.ts';
import { clusterChecks } from './cluster.ts';
import { diskChecks } from './disks.ts';
import { firewallChecks } from './firewall.ts';
import { hardwareChecks } from './hardware.ts';
import { hostChecks } from './host.ts';
import { kernelChecks } from './kernel.ts';
import { networkChecks } from './network.ts';
import { podChecks } from './pods.ts';
import { timeChecks } from './time.ts';

export { type Check, shell } from './check.ts';
export type { HostCommands } from './commands.ts';
export { diagnose, exitCodeOf, summarize } from './diagnosis.ts';

export const CHECKS: readonly Check[] = [
  ...kernelChecks,
  ...networkChecks,
  ...firewallChecks,
  ...timeChecks,
  ...diskChecks,
  ...hardwareChecks,
  ...hostChecks,
  ...certificateChecks,
  ...clusterChecks,
  ...podChecks,
];
