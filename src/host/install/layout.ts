/**
 * Files of an installation below the root. All of them belong to the installation, so an uninstallation removes them.
 */
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LINK_NAMES } from '../../base/command-line/command-links.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { isReleaseVersion } from '../../base/versions/release-version.ts';
import { digestOf, GUARD_LINK } from '../../openshift/updates/io/index.ts';
import { shellFiles, unitFile } from '../process/assets.ts';

export const SERVICE = 'hyperedge.service';
export const GUARD_SERVICE = 'hyperedge-update-guard.service';

/** Unit that completes or undoes an interrupted change of the machine config early at boot. */
const REPLAY = 'hyperedge-machine-config.service';

const EXECUTABLE = 'usr/local/bin/hyperedge';
/** Directories that exist on an installed host so that an administrator can write files into them. */
const EMPTY_DIRECTORIES = ['etc/origin/bootstrap.yaml.d', 'etc/origin/manifests'];
/** Installed unit and configuration files: path relative to the root → name of the file in the release. */
const FILES: ReadonlyMap<string, string> = new Map([
  [`etc/systemd/system/${SERVICE}`, SERVICE],
  [`etc/systemd/system/${REPLAY}`, REPLAY],
  [`etc/systemd/system/${GUARD_SERVICE}`, GUARD_SERVICE],
  ['etc/systemd/system/hyperedge.slice', 'hyperedge.slice'],
  ['etc/systemd/system-preset/80-hyperedge.preset', '80-hyperedge.preset'],
  ['etc/tmpfiles.d/hyperedge.conf', 'hyperedge.tmpfiles.conf'],
]);
/** Installed links: path relative to the root → target. The first link is the one that `systemctl enable` creates. */
const LINKS: ReadonlyMap<string, string> = new Map([
  [`etc/systemd/system/multi-user.target.wants/${SERVICE}`, `/etc/systemd/system/${SERVICE}`],
  [`etc/systemd/system/sysinit.target.wants/${REPLAY}`, `/etc/systemd/system/${REPLAY}`],
  ...LINK_NAMES.map((name) => [`usr/local/bin/${name}`, 'hyperedge'] as const),
]);

/** Link of the built-in kubectl. It is omitted on a host that has another kubectl. */
const CLIENT_LINK = 'usr/local/bin/kubectl';
const CLIENT_DIRECTORIES = ['usr/bin', 'usr/local/sbin', 'usr/sbin', 'bin', 'snap/bin', 'opt/bin'];

async function hasOtherClient(root: string): Promise<boolean> {
  for (const directory of CLIENT_DIRECTORIES)
    if ((await lstat(join(root, directory, 'kubectl')).catch(() => undefined)) !== undefined) return true;
  return false;
}

const MANUAL = 'usr/local/share/man/man1';
const COMPLETIONS = [
  'usr/local/share/bash-completion/completions/hyperedge',
  'usr/local/share/zsh/site-functions/_hyperedge',
  'usr/local/share/fish/vendor_completions.d/hyperedge.fish',
];
/**
 * Directories of the man pages and completions, inner directories first. They are removed if they become empty, because
 * a default Debian has none of them.
 */
const SHELL_DIRECTORIES = [
  ...[MANUAL, 'usr/local/share/bash-completion/completions', 'usr/local/share/bash-completion'],
  ...['usr/local/share/zsh/site-functions', 'usr/local/share/zsh'],
  ...['usr/local/share/fish/vendor_completions.d', 'usr/local/share/fish'],
];
/**
 * If this file of the Debian package exists, the package has installed completions and man pages, so `install` omits
 * them.
 */
const PACKAGED_COMPLETION = 'usr/share/bash-completion/completions/hyperedge';

export interface Placed {
  /** Paths that were written. */
  readonly changed: readonly string[];
  /** Paths that other software uses. They were not changed. */
  readonly foreign: readonly string[];
  readonly executable: string;
}

/** Writes files that are missing or differ. Throws CodedError 'unwritable' with the path. */
export async function placeFiles(
  root: string,
  source: string,
  shell: ReadonlyMap<string, string> = shellFiles(),
): Promise<Placed> {
  const changed: string[] = [];
  const foreign: string[] = [];
  const executable = join(root, EXECUTABLE);
  const at = async (path: string, act: () => Promise<boolean>): Promise<void> => {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o755 });
      if (await act()) changed.push(path);
    } catch (error) {
      throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
    }
  };
  await at(executable, () => placeExecutable(source, executable));
  for (const directory of EMPTY_DIRECTORIES) await at(join(root, directory, 'any'), async () => false);
  const place = (name: string, text: string): Promise<void> => {
    const path = join(root, name);
    return at(path, async () => {
      if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return false;
      await writeFile(`${path}.new`, text, { mode: 0o644 });
      await rename(`${path}.new`, path);
      return true;
    });
  };
  for (const [name, release] of FILES) await place(name, await unitFile(release));
  const isPackaged = (await lstat(join(root, PACKAGED_COMPLETION)).catch(() => undefined)) !== undefined;
  if (!isPackaged) for (const [name, text] of shell) await place(name, text);
  for (const [name, target] of LINKS) {
    const path = join(root, name);
    if (name === CLIENT_LINK && (await hasOtherClient(root))) continue;
    await at(path, async () => {
      const present = await lstat(path).catch(() => undefined);
      if (present === undefined) {
        await symlink(target, path);
        return true;
      }
      if (!(await isOwnLink(path, target))) foreign.push(path);
      return false;
    });
  }
  return { changed, foreign, executable };
}

/** Whether a unit file of an installation exists below the root. The executable may exist without an installation. */
export async function hasFiles(root: string): Promise<boolean> {
  for (const name of FILES.keys())
    if ((await lstat(join(root, name)).catch(() => undefined)) !== undefined) return true;
  return false;
}

/** Removes the files of the installation; resolves with the removed paths. */
export async function removeFiles(root: string): Promise<string[]> {
  const removed: string[] = [];
  const remove = async (name: string): Promise<void> => {
    const path = join(root, name);
    if ((await lstat(path).catch(() => undefined)) === undefined) return;
    await rm(path, { force: true });
    removed.push(path);
  };
  for (const [name, target] of LINKS) if (await isOwnLink(join(root, name), target)) await remove(name);
  const shell = [...COMPLETIONS, ...(await pagesBelow(root))];
  for (const name of [...FILES.keys(), EXECUTABLE, ...(await versionsBelow(root)), ...shell]) await remove(name);
  for (const name of SHELL_DIRECTORIES) await rmdir(join(root, name)).catch(ignore('files of other programs are kept'));
  // A default Debian has no such directory. rmdir(2) keeps it if it contains other presets.
  await rmdir(join(root, 'etc/systemd/system-preset')).catch(ignore('other presets are kept'));
  return removed;
}

/** Paths of executables that updates have installed, and of the link of the update guard. */
async function versionsBelow(root: string): Promise<string[]> {
  const directory = dirname(EXECUTABLE);
  const names = await readdir(join(root, directory)).catch(() => []);
  const own = names.filter((name) => name === GUARD_LINK || isReleaseVersion(name.slice('hyperedge-'.length)));
  return own.filter((name) => name.startsWith('hyperedge-')).map((name) => join(directory, name));
}

/** Paths of man pages that this release or an earlier one has installed. */
async function pagesBelow(root: string): Promise<string[]> {
  const names = await readdir(join(root, MANUAL)).catch(() => []);
  return names.filter((name) => /^hyperedge(?:-[a-z0-9-]+)?\.1$/.test(name)).map((name) => join(MANUAL, name));
}

/** Removes the link that starts the service at boot. */
export async function disableService(root: string): Promise<void> {
  await rm(join(root, `etc/systemd/system/multi-user.target.wants/${SERVICE}`), { force: true });
}

async function isOwnLink(path: string, target: string): Promise<boolean> {
  return (await readlink(path).catch(() => undefined)) === target;
}

/**
 * Installs the executable and returns whether it was replaced. A rename replaces it, so that running processes keep the
 * old file.
 */
async function placeExecutable(source: string, target: string): Promise<boolean> {
  const [from, present] = await Promise.all([lstat(source), lstat(target).catch(() => undefined)]);
  if (present?.ino === from.ino && present.dev === from.dev) return false;
  if (present?.size === from.size && (await digestOf(source)) === (await digestOf(target))) {
    await chmod(target, 0o755);
    return false;
  }
  const temporary = `${target}.new`;
  try {
    await copyFile(source, temporary);
    await chmod(temporary, 0o755);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return true;
}
