/** Record of the files that configs have written on this host, and of the entries that were there before. */
import { decodeJson, fields, list, object, own, text as string } from '../../../base/decode.ts';
import { CodedError } from '../../../base/errors.ts';
import type { Disk, Owner } from './disk.ts';
import type { Recorded } from './observe.ts';

export const STATE_DIRECTORY = '/var/lib/origin/machine-config';
export const STATE = `${STATE_DIRECTORY}/state.json`;
export const ORIGINALS = `${STATE_DIRECTORY}/originals`;
export const PRIVATE: Owner = { mode: 0o600, uid: 0, gid: 0 };
const MAX_STATE_BYTES = 64 * 1024 * 1024;

/** Original entry of a path before the first config; contents are in the directory of originals. */
export type Original =
  | ({ readonly kind: 'file'; readonly stored: string } & Owner)
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export interface State {
  readonly version: 1;
  readonly note: unknown;
  readonly entries: Readonly<Record<string, Recorded>>;
  readonly originals: Readonly<Record<string, Original>>;
  /** Directories that were created for entries, parents first. */
  readonly directories: readonly string[];
}

const STATE_SCHEMA = own<State>(object({ entries: fields, originals: fields, directories: list(string) }));
export const EMPTY: State = { version: 1, note: null, entries: {}, originals: {}, directories: [] };

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
