/**
 * Measurements in a process of their own, because a disk may not answer. This file imports little, so that the process
 * starts quickly.
 */
import { CodedError } from '../../base/errors.ts';
import { measureFsync } from '../../doctor/io/machine/disks.ts';

/** Throws CodedError 'bad-flag'. */
export async function runProbe(args: readonly string[]): Promise<unknown> {
  const [what, target = ''] = args;
  if (what === 'fsync') return measureFsync(target);
  throw new CodedError('bad-flag', `doctor-probe: no probe is called ${what}`);
}
