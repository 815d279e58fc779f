/**
 * Operations on paths outside of this host's own directories. Their file system may hang, for example on a dead NFS
 * server. Each operation therefore runs in a child process with a deadline and never blocks a thread of this process.
 */
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import type { Mounter } from '../../port.ts';
import type { ForeignFiles, HostPathKind } from '../../ports/files-port.ts';

/** Time limits. An ownership change may cover millions of files. */
const DEADLINES = { quickMs: 10_000, bindMs: 30_000, ownMs: 1_800_000 };
const OUTPUT_BYTES = 1 << 16;

const KINDS: Readonly<Record<string, HostPathKind>> = {
  directory: 'Directory',
  'regular file': 'File',
  'regular empty file': 'File',
  socket: 'Socket',
  'character special file': 'CharDevice',
  'block special file': 'BlockDevice',
};

export interface ForeignFilesOptions {
  /** Whether a path is in the host's own directories. Such a path is accessed in this process. */
  readonly isOwn: (path: string) => boolean;
  readonly own: ForeignFiles;
  readonly mounts: Mounter;
  /** Time limits of child processes; default: ten seconds, half a minute and half an hour. */
  readonly deadlines?: { readonly quickMs: number; readonly bindMs: number; readonly ownMs: number };
  /** Program and arguments that start `runVolumeCall`; the call's arguments are appended. */
  readonly helper: readonly string[];
}

export function createForeignFiles(options: ForeignFilesOptions): ForeignFiles {
  const { isOwn, own } = options;
  const foreign = foreignFiles(options);
  const at = (path: string): ForeignFiles => (isOwn(path) ? own : foreign);
  return {
    makeDirectory: (path, mode) => at(path).makeDirectory(path, mode),
    makeFile: (path) => at(path).makeFile(path),
    isPresent: (path) => at(path).isPresent(path),
    kindOf: (path) => at(path).kindOf(path),
    ownByGroup: (path, gid, policy) => at(path).ownByGroup(path, gid, policy),
    bindSubPath: (volume, subPath, target) => at(volume).bindSubPath(volume, subPath, target),
  };
}

function foreignFiles({ mounts, helper, deadlines = DEADLINES }: ForeignFilesOptions): ForeignFiles {
  const { quickMs, bindMs, ownMs } = deadlines;
  const children = new Children();
  const volumeCall = (path: string, timeoutMs: number, ...args: readonly string[]): Promise<string> => {
    const [program = '', ...first] = helper;
    return children.run(path, program, [...first, ...args], timeoutMs);
  };
  return {
    async makeDirectory(path, mode = 0o755) {
      if ((await kindAt(children, path, ['-L'], quickMs)) !== undefined) return false;
      await children.run(path, 'mkdir', ['-p', '-m', mode.toString(8), '--', path], quickMs);
      return true;
    },
    async makeFile(path) {
      await children.run(path, 'mkdir', ['-p', '-m', '755', '--', dirname(path)], quickMs);
      await children.run(path, 'touch', ['--', path], quickMs);
    },
    isPresent: async (path) => (await kindAt(children, path, [], quickMs)) !== undefined,
    async kindOf(path) {
      const kind = await kindAt(children, path, ['-L'], quickMs);
      return kind === undefined ? undefined : KINDS[kind];
    },
    async ownByGroup(path, gid, policy = '') {
      await volumeCall(path, ownMs, 'own', path, String(gid), policy);
    },
    async bindSubPath(volume, subPath, target) {
      if (subPath === '' && (await mounts.isMountPoint(target))) return;
      await volumeCall(volume, bindMs, 'bind', volume, subPath, target);
    },
  };
}

/** Returns undefined if the path does not exist. Throws if that cannot be determined. */
async function kindAt(
  children: Children,
  path: string,
  flags: readonly string[],
  timeoutMs: number,
): Promise<string | undefined> {
  try {
    return (await children.run(path, 'stat', [...flags, '-c', '%F', '--', path], timeoutMs)).trim();
  } catch (error) {
    if (/No such file or directory|Not a directory/.test(messageOf(error))) return undefined;
    throw error;
  }
}

/**
 * Runs child processes. If a child exceeds its deadline, no other child starts for the same path until that child has
 * exited: a child in uninterruptible sleep survives SIGKILL.
 */
class Children {
  readonly #blocked = new Set<string>();

  run(path: string, program: string, args: readonly string[], timeoutMs: number): Promise<string> {
    if (this.#blocked.has(path)) {
      return Promise.reject(
        new Error(`${path}: its file system still does not answer; check the server or unmount it`),
      );
    }
    const { NODE_OPTIONS: _options, ...env } = process.env;
    return new Promise((resolve, reject) => {
      const settings = { env: { ...env, LC_ALL: 'C' }, maxBuffer: OUTPUT_BYTES };
      const child = execFile(program, args, settings, (error, stdout, stderr) => {
        clearTimeout(deadline);
        this.#blocked.delete(path);
        if (error === null) resolve(stdout);
        else reject(new Error(stderr.trim() === '' ? messageOf(error) : stderr.trim()));
      });
      const deadline = setTimeout(() => {
        this.#blocked.add(path);
        child.kill('SIGKILL');
        child.unref();
        const seconds = timeoutMs / 1000;
        reject(
          new Error(`${path}: its file system did not answer within ${seconds} s; check the server or unmount it`),
        );
      }, timeoutMs);
    });
  }
}
