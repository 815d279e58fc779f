/**
 * Measurements that need their own process: a disk may not answer, or the measurement is made in the network namespace
 * of a pod. This file imports little, so that the process starts quickly.
 */
import { CodedError } from '../../base/errors.ts';
import { measureFsync } from '../../doctor/io/machine/disks.ts';
import { probeConnection, probeQuery } from '../../doctor/io/machine/probes.ts';

/** Runs one measurement and resolves with its result. Throws CodedError 'bad-flag'. */
export async function runProbe([what, target = '', detail = '']: readonly string[]): Promise<unknown> {
  if (what === 'fsync') return measureFsync(target);
  if (what === 'dns') return { problem: await probeQuery(target, detail) };
  if (what === 'tcp') return { problem: await probeConnection(target, Number(detail)) };
  throw new CodedError('bad-flag', `doctor-probe: no probe is called ${what}`);
}
