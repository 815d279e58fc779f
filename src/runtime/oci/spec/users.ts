/**
 * Resolves a container's user from the image's own `/etc/passwd` and `/etc/group`. The files are untrusted: links in
 * their paths are not followed (they could lead into the host), and sizes are limited.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type ContainerSecurity, RuntimeError } from '../../port.ts';

const MAX_FILE_BYTES = 1024 * 1024;

export interface ContainerUser {
  readonly uid: number;
  readonly gid: number;
  readonly additionalGids: readonly number[];
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

interface Group {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}

/**
 * `imageUser` is the image's `user[:group]`. Throws RuntimeError 'create-failed' for a name that the image does not
 * define.
 */
export async function resolveUser(
  rootfs: string,
  imageUser: string,
  security: ContainerSecurity,
): Promise<ContainerUser> {
  const [imageName = '', imageGroup = ''] = imageUser.split(':', 2);
  const wanted = security.runAsUser === undefined ? imageName : String(security.runAsUser);
  const accounts = parseAccounts(await readImageFile(rootfs, 'passwd'));
  const groups = parseGroups(await readImageFile(rootfs, 'group'));

  const account = findAccount(accounts, wanted === '' ? '0' : wanted);
  const group =
    security.runAsGroup ??
    (security.runAsUser === undefined && imageGroup !== '' ? groupId(groups, imageGroup) : account.gid);
  const additional = new Set(security.supplementalGroups);
  if (security.strictSupplementalGroups !== true && account.name !== '') {
    for (const { gid, members } of groups) if (members.includes(account.name)) additional.add(gid);
  }
  return { uid: account.uid, gid: group, additionalGids: [...additional] };
}

function findAccount(accounts: readonly Account[], wanted: string): Account {
  if (isId(wanted)) {
    const uid = Number(wanted);
    return accounts.find((account) => account.uid === uid) ?? { name: '', uid, gid: 0 };
  }
  const account = accounts.find(({ name }) => name === wanted);
  if (account !== undefined) return account;
  if (wanted === 'root') return { name: 'root', uid: 0, gid: 0 };
  throw new RuntimeError('create-failed', `the image's /etc/passwd has no user ${JSON.stringify(wanted)}`);
}

function groupId(groups: readonly Group[], wanted: string): number {
  if (isId(wanted)) return Number(wanted);
  const group = groups.find(({ name }) => name === wanted);
  if (group === undefined)
    throw new RuntimeError('create-failed', `the image's /etc/group has no group ${JSON.stringify(wanted)}`);
  return group.gid;
}

const isId = (text: string): boolean => /^\d{1,10}$/.test(text) && Number(text) <= 0xffffffff;

function parseAccounts(text: string): readonly Account[] {
  return text.split('\n').flatMap((line) => {
    const [name = '', , uid = '', gid = ''] = line.split(':');
    return isId(uid) && isId(gid) ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

function parseGroups(text: string): readonly Group[] {
  return text.split('\n').flatMap((line) => {
    const [name = '', , gid = '', members = ''] = line.split(':');
    return isId(gid) ? [{ name, gid: Number(gid), members: members.split(',').filter((member) => member !== '') }] : [];
  });
}

async function readImageFile(rootfs: string, name: string): Promise<string> {
  try {
    if (!(await lstat(join(rootfs, 'etc'))).isDirectory()) return '';
    const file = await open(
      join(rootfs, 'etc', name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.size > MAX_FILE_BYTES) return '';
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return '';
    throw error;
  }
}
