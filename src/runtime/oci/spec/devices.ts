import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import { RuntimeError } from '../../port.ts';

export interface OciDevice {
  readonly path: string;
  readonly type: 'c' | 'b';
  readonly major: number;
  readonly minor: number;
  readonly fileMode: number;
  readonly uid: number;
  readonly gid: number;
}

const MAX_HOST_DEVICES = 4096;

/** Throws RuntimeError 'create-failed' if `hostPath` is not a device. */
export async function hostDevice(hostPath: string, containerPath: string): Promise<OciDevice> {
  const device = await describeDevice(hostPath, containerPath).catch((error: unknown) => {
    throw new RuntimeError('create-failed', `device ${hostPath}: ${messageOf(error)}`, { cause: error });
  });
  if (device === undefined) throw new RuntimeError('create-failed', `${hostPath} is not a device`);
  return device;
}

/**
 * All devices below `/dev`, for privileged containers, except those that containers have of their own (terminals,
 * shared memory).
 */
export async function allHostDevices(): Promise<readonly OciDevice[]> {
  const devices: OciDevice[] = [];
  const walk = async (directory: string, depth: number): Promise<void> => {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) {
        if (depth < 3 && !['/dev/pts', '/dev/shm', '/dev/mqueue', '/dev/fd'].includes(path))
          await walk(path, depth + 1);
        continue;
      }
      if (!entry.isCharacterDevice() && !entry.isBlockDevice()) continue;
      if (path === '/dev/console' || path === '/dev/ptmx' || devices.length >= MAX_HOST_DEVICES) continue;
      // A device may be removed during the scan.
      const device = await describeDevice(path, path).catch(() => undefined);
      if (device !== undefined) devices.push(device);
    }
  };
  await walk('/dev', 0);
  return devices;
}

async function describeDevice(hostPath: string, containerPath: string): Promise<OciDevice | undefined> {
  const stats = hostPath.startsWith('/dev/') ? await stat(hostPath) : await lstat(hostPath);
  if (!stats.isCharacterDevice() && !stats.isBlockDevice()) return undefined;
  // Decodes dev_t: 12 bits of major and 20 bits of minor number, interleaved (makedev(3)).
  const raw = BigInt(stats.rdev);
  const major = Number(((raw >> 8n) & 0xfffn) | ((raw >> 32n) & ~0xfffn));
  const minor = Number((raw & 0xffn) | ((raw >> 12n) & ~0xffn & 0xffffffffn));
  return {
    path: containerPath,
    type: stats.isCharacterDevice() ? 'c' : 'b',
    major,
    minor,
    fileMode: stats.mode & 0o777,
    uid: stats.uid,
    gid: stats.gid,
  };
}
