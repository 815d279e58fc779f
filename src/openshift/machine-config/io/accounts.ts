/** Accounts of the host: user ID, group ID and home directory by name. Source: passwd(5), group(5). */
import { CodedError } from '../../../base/errors.ts';
import type { Disk } from './disk.ts';

const MAX_BYTES = 1024 * 1024;

export interface Accounts {
  /** Home directory of the user; undefined if the user does not exist. */
  homeOf(user: string): string | undefined;
  /** Numeric ID of the user. Throws CodedError 'bad-owner' if the user does not exist. */
  uidOf(user: string | number): number;
  gidOf(group: string | number): number;
}

/** Reads passwd and group below the root of `disk`. The user root is always known. */
export async function readAccounts(disk: Disk): Promise<Accounts> {
  const users = await tableOf(disk, '/etc/passwd');
  const groups = await tableOf(disk, '/etc/group');
  const numberOf = (table: ReadonlyMap<string, readonly string[]>, what: string, name: string | number): number => {
    if (typeof name === 'number') return name;
    if (name === 'root') return 0;
    const id = Number(table.get(name)?.[2]);
    if (Number.isSafeInteger(id) && id >= 0) return id;
    throw new CodedError('bad-owner', `${what} ${name} not found on this host; create it first`);
  };
  return {
    homeOf(user) {
      const home = user === 'root' ? '/root' : users.get(user)?.[5];
      return home?.startsWith('/') === true && home !== '/' ? home.replace(/\/+$/, '') : undefined;
    },
    uidOf: (user) => numberOf(users, 'user', user),
    gidOf(group) {
      if (typeof group === 'number' || groups.has(group)) return numberOf(groups, 'group', group);
      // If no group has this name, it is the name of a user, whose primary group may have another name.
      const primary = Number(users.get(group)?.[3]);
      return Number.isSafeInteger(primary) ? primary : numberOf(groups, 'group', group);
    },
  };
}

async function tableOf(disk: Disk, path: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const text = await disk.read(path, MAX_BYTES).then(
    (bytes) => new TextDecoder().decode(bytes),
    () => '',
  );
  return new Map(
    text.split('\n').flatMap((line) => {
      const fields = line.split(':');
      return fields.length < 3 ? [] : [[fields[0] ?? '', fields] as const];
    }),
  );
}
