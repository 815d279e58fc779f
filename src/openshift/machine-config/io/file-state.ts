/** Reads the state file, which records the files that configs have written on this host. */
import { decodeJson, fields, list, object, own, text as string } from '../../../base/decode.ts';
import { CodedError } from '../../../base/errors.ts';
import { STATE, type State } from '../core/host-files/port.ts';
import type { Disk } from './disk.ts';

const MAX_STATE_BYTES = 64 * 1024 * 1024;

const STATE_SCHEMA = own<State>(object({ entries: fields, originals: fields, directories: list(string) }));

export async function readState(disk: Disk): Promise<State | undefined> {
  if ((await disk.stat(STATE)) === undefined) return undefined;
  const text = new TextDecoder().decode(await disk.read(STATE, MAX_STATE_BYTES));
  try {
    return decodeJson(STATE_SCHEMA, text, STATE);
  } catch (error) {
    const fix = 'delete it, and the files of the config count as the originals of the host';
    throw new CodedError('bad-state', `${STATE}: is not JSON; ${fix}`, { cause: error });
  }
}
