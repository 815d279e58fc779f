/** The checks before an installation or a join: errors stop it, warnings are printed. */
import { CodedError } from '../../base/errors.ts';
import type { DoctorReport } from '../../doctor/port.ts';
import { chosenChecks, runDoctor } from './doctor.ts';

export interface PreflightOptions {
  readonly root: string;
  /** IDs of checks whose errors are printed but do not stop the installation. */
  readonly ignore: readonly string[];
  readonly note: (text: string) => void;
}

/** Throws CodedError 'preflight' with every error and its fix, or 'unknown-check' for an unknown ID in `ignore`. */
export async function preflight({ root, ignore, note }: PreflightOptions): Promise<void> {
  chosenChecks({ only: ignore });
  requirePassed(await runDoctor({ root, preflight: true }), ignore, note);
}

/** Throws CodedError 'preflight' for errors. Facts that could not be gathered do not stop an installation. */
export function requirePassed({ checks }: DoctorReport, ignore: readonly string[], note: (text: string) => void): void {
  const stops: string[] = [];
  for (const { id, findings } of checks)
    for (const { result, evidence, fix } of findings) {
      if (result === 'error' && !ignore.includes(id)) stops.push(`${id}: ${evidence}; fix: ${fix ?? ''}`);
      else if (result === 'error' || result === 'warning')
        note(`${result} ${id}: ${evidence}${fix === undefined ? '' : `; fix: ${fix}`}`);
    }
  if (stops.length > 0)
    throw new CodedError(
      'preflight',
      `${stops.join(' | ')}; then repeat, or give --ignore CHECK: see hyperedge doctor`,
    );
}
