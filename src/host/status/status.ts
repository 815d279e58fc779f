/** `hyperedge status`: report about the host and its cluster from all sources that answer. */
import { exitCodeOf, reportOf, type TextOptions, textOf } from '../../status/core/index.ts';
import type { ClusterStatus } from '../../status/port.ts';
import { canonicalRoot } from '../config/paths.ts';
import type { HostStatus } from '../control/control.ts';
import { systemClock } from '../process/process.ts';
import { gatherStatus } from './sources.ts';

export interface ShownStatus {
  /** Status of the host process, if it runs, combined with the report about the cluster. */
  readonly document: Partial<HostStatus> & ClusterStatus;
  readonly installed: boolean;
  /** Exit code: 1 if the report contains an error, otherwise 0. */
  readonly code: number;
  /** Lines for the standard error: why the host process does not answer, and errors that it reports. */
  readonly problems: readonly string[];
  text(options: TextOptions): string;
}

export async function readStatus(root: string | undefined): Promise<ShownStatus> {
  const { about, facts, host } = await gatherStatus(await canonicalRoot(root), systemClock.nowMs());
  const report = reportOf(facts, about);
  const { process } = facts;
  return {
    document: { ...host, ...report },
    installed: about.installed,
    code: exitCodeOf(report),
    problems:
      process.state === 'known'
        ? [...process.value.kubernetes.skew.map((each) => `warning: version skew: ${each}`), ...process.value.failures]
        : [process.reason],
    text: (options) =>
      textOf(
        report,
        process.state === 'known' ? { process: process.value } : { reason: process.reason },
        about,
        options,
      ),
  };
}
