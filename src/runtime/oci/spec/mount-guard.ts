/**
 * Checks mounts over the kernel's file systems. runc before 1.2.8, 1.3.3 and 1.4.0-rc.3 masks paths of /proc with the
 * container's own /dev/null, and opens its console by path (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881): a volume
 * whose content another container replaces at the same time can redirect runc to files of the host's kernel. With such
 * a version, only mounts that cannot replace files that runc itself uses are allowed.
 */
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import { type Mount, RuntimeError } from '../../port.ts';
import { runCommand } from '../command.ts';
import { normalisePath } from './mounts.ts';

/** `text`: output of `--version`. Programs other than runc count as affected, because their fixes are unknown here. */
export function isMountSafe(text: string): boolean {
  const match = /^runc version (\d+)\.(\d+)\.(\d+)(?:-rc\.?(\d+))?/m.exec(text);
  if (match === null) return false;
  const [major = 0, minor = 0, patch = 0] = match.slice(1, 4).map(Number);
  const candidate = match[4] === undefined ? Number.POSITIVE_INFINITY : Number(match[4]);
  if (major !== 1) return major > 1;
  if (minor < 2) return false;
  if (minor === 2) return patch > 8 || (patch === 8 && candidate === Number.POSITIVE_INFINITY);
  if (minor === 3) return patch > 3 || (patch === 3 && candidate === Number.POSITIVE_INFINITY);
  return minor > 4 || patch > 0 || candidate >= 3;
}

const SYSTEM = new Set(['dev', 'proc', 'sys']);
/** Names below /dev that runc creates, opens or binds during container setup. Other names are safe. */
const OWN_DEVICES = new Set(
  'console core fd full null ptmx pts random stderr stdin stdout tty urandom zero'.split(' '),
);
const MAX_LINKS = 40;
const LOOKUP_MS = 10_000;

/** Throws RuntimeError 'create-failed' with the mount. `rootfs` is the container's root as in the image. */
export async function checkMounts(rootfs: string, mounts: readonly Mount[], runtime: string): Promise<void> {
  for (const name of SYSTEM) {
    const found = await lstat(join(rootfs, name)).catch(() => undefined);
    if (found?.isSymbolicLink() === true) throw refused(`the image's /${name} is a symbolic link`, runtime);
  }
  const made: { readonly destination: string; readonly source: string }[] = [];
  for (const mount of mounts.toSorted((a, b) => depth(a.containerPath) - depth(b.containerPath))) {
    const destination = await resolveIn(rootfs, made, mount.containerPath);
    if (!(await isHarmless(destination, mount.hostPath)))
      throw refused(`volume mount ${JSON.stringify(mount.containerPath)} takes the place of ${destination}`, runtime);
    made.push({ destination, source: mount.hostPath });
  }
}

const refused = (what: string, runtime: string): RuntimeError =>
  new RuntimeError(
    'create-failed',
    `${what}, which ${runtime} does not withstand: CVE-2025-31133; update runc to 1.2.8, 1.3.3 or later, or use another path`,
  );

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');
const depth = (path: string): number => partsOf(path).length;

/**
 * Whether a mount at a kernel path is harmless: a file of the host that is mounted at its own path is as trusted as the
 * host.
 */
async function isHarmless(destination: string, source: string): Promise<boolean> {
  const [top, second] = partsOf(destination);
  if (top === undefined) return false;
  if (!SYSTEM.has(top)) return true;
  if (top === 'dev' && second !== undefined && !OWN_DEVICES.has(second)) return true;
  const real = await runCommand('realpath', ['-e', '--', source], { timeoutMs: LOOKUP_MS }).catch(ignoringCommand);
  return real?.replace(/\n$/, '') === destination;
}

/**
 * Resolves where runc will create the mount: links in the image and in previously mounted volumes are followed inside
 * the container's root.
 */
async function resolveIn(
  rootfs: string,
  made: readonly { readonly destination: string; readonly source: string }[],
  path: string,
): Promise<string> {
  const left = partsOf(path);
  let current: string[] = [];
  let links = 0;
  for (let part = left.shift(); part !== undefined; part = left.shift()) {
    if (part === '..') {
      current.pop();
      continue;
    }
    const next = [...current, part];
    const link = SYSTEM.has(next[0] ?? '') ? undefined : await linkAt(rootfs, made, `/${next.join('/')}`);
    if (link === undefined) {
      current = next;
      continue;
    }
    if (++links > MAX_LINKS)
      throw new RuntimeError(
        'create-failed',
        `volume mount ${JSON.stringify(path)}: too many levels of symbolic links`,
      );
    if (link.startsWith('/')) current = [];
    left.unshift(...partsOf(link));
  }
  return normalisePath(current.join('/'));
}

/**
 * Target of a link; undefined if the path is missing or not a link. A child process reads it, because a volume may
 * hang.
 */
async function linkAt(
  rootfs: string,
  made: readonly { readonly destination: string; readonly source: string }[],
  path: string,
): Promise<string | undefined> {
  const over = made.findLast(({ destination }) => path.startsWith(`${destination}/`));
  if (over === undefined) return readlink(join(rootfs, path)).catch(() => undefined);
  const inVolume = join(over.source, path.slice(over.destination.length));
  return runCommand('readlink', ['-n', '--', inVolume], { timeoutMs: LOOKUP_MS }).catch(ignoringCommand);
}

/** A failure of the program means that the path is missing. A timeout is rethrown. */
function ignoringCommand(error: unknown): undefined {
  if (!(error instanceof CodedError && error.code === 'command')) throw error;
}
