/** `hyperedge doctor`: gathers the facts that the chosen checks need and runs the checks. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, ignore } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { CHECKS, type Check, diagnose, type HostCommands, shell, summarize } from '../../doctor/core/index.ts';
import { readIdentity } from '../../doctor/io/machine/index.ts';
import type { DoctorReport } from '../../doctor/port.ts';
import { masterFiles } from '../../pki/index.ts';
import { canonicalRoot } from '../config/paths.ts';
import { openAssets, selfCommand } from '../process/assets.ts';
import { openHelpers } from '../process/helper-programs.ts';
import { settlesWithin, systemClock } from '../process/process.ts';
import { createContext } from './context.ts';
import { gatherFacts } from './gather.ts';
import { factSources } from './sources.ts';

export { exitCodeOf } from '../../doctor/core/index.ts';
export type { DoctorReport };

export interface DoctorRun {
  readonly root?: string | undefined;
  /** IDs of the checks to run. If it is empty, all checks run. */
  readonly only?: readonly string[];
  readonly preflight?: boolean;
  /** Directory that contains /proc, /sys, /etc, /boot and /run of the machine. Default: `/`. */
  readonly machine?: string;
  /** Command that starts `doctor-probe`. Default: this program. */
  readonly helper?: readonly string[];
}

const UNPACK_MS = 10_000;

/** Checks to run. Throws CodedError 'unknown-check' with the ID. */
export function chosenChecks({
  only = [],
  preflight = false,
}: Pick<DoctorRun, 'only' | 'preflight'>): readonly Check[] {
  const unknown = only.find((id) => !CHECKS.some((each) => each.id === id));
  if (unknown !== undefined)
    throw new CodedError('unknown-check', `no check is called ${unknown}; hyperedge doctor --list shows them`);
  return CHECKS.filter((each) => (only.length === 0 || only.includes(each.id)) && (!preflight || each.preflight));
}

export async function runDoctor(run: DoctorRun): Promise<DoctorReport> {
  const checks = chosenChecks(run);
  const { machine = '/', helper = [...selfCommand(), 'doctor-probe'] } = run;
  await settlesWithin(useBundledPrograms().catch(ignore('the checks report missing programs')), UNPACK_MS);
  const nowMs = systemClock.nowMs();
  const root = await canonicalRoot(run.root);
  const context = createContext({ root, machine, helper, nowMs });
  const facts = await gatherFacts(factSources(context), [...new Set(checks.flatMap(({ needs }) => needs))]);
  const { hostName } = await readIdentity(machine);
  const found = diagnose(checks, facts, await hostCommands(root));
  return summarize(found, { host: hostName, version: PRODUCT_VERSION, time: timestamp(nowMs) });
}

/**
 * Adds the programs in this executable to PATH, after the host's own programs: these are preferred, because unpacking
 * may fail on a full disk.
 */
async function useBundledPrograms(): Promise<void> {
  await openAssets();
  const directory = await openHelpers();
  if (directory !== undefined) process.env['PATH'] = `${process.env['PATH'] ?? '/usr/sbin:/usr/bin'}:${directory}`;
}

const NAME = 'hyperedge';

/**
 * Commands for the fixes in the report. The program is a plain name if PATH finds this executable under that name,
 * otherwise its path.
 */
async function hostCommands(root: string): Promise<HostCommands> {
  const self = selfCommand();
  const [own, ...found] = await Promise.all(
    [self[0] ?? '', ...(process.env['PATH'] ?? '').split(':').map((directory) => join(directory, NAME))].map((path) =>
      realpath(path).catch(() => undefined),
    ),
  );
  const isFound = self.length === 1 && found.find((path) => path !== undefined) === own;
  return { program: isFound ? NAME : self.map(shell).join(' '), root, kubeconfig: masterFiles(root).adminKubeconfig };
}
