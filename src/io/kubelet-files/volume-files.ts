import type { Stats } from 'node:fs';
import { chmod, chown, lstat, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { HostPathKind, VolumeFiles } from '../../components/kubelet/files-port.ts';
import type { Mounter } from '../../components/kubelet/port.ts';
import { writeAtomically } from './atomic-writer.ts';
import { bindSubPath } from './sub-path.ts';

export function createVolumeFiles(mounts: Mounter): VolumeFiles {
  return {
    async makeDirectory(path, mode) {
      const made = (await mkdir(path, { recursive: true, mode: 0o755 })) !== undefined;
      if (made && mode !== undefined) await chmod(path, mode);
      return made;
    },
    async makeFile(path) {
      await mkdir(dirname(path), { recursive: true, mode: 0o755 });
      await (await open(path, 'a', 0o644)).close();
    },
    isPresent: (path) =>
      lstat(path).then(
        () => true,
        () => false,
      ),
    kindOf: (path) => stat(path).then(kindOf, () => undefined),
    async ownByGroup(path, gid, policy) {
      if (policy === 'OnRootMismatch' && isOwnedBy(gid, await stat(path))) return;
      await ownByGroup(path, gid);
    },
    writeAtomically,
    bindSubPath: (volume, subPath, target) => bindSubPath(volume, subPath, target, mounts),
  };
}

function kindOf(found: Stats): HostPathKind | undefined {
  if (found.isDirectory()) return 'Directory';
  if (found.isFile()) return 'File';
  if (found.isSocket()) return 'Socket';
  if (found.isCharacterDevice()) return 'CharDevice';
  return found.isBlockDevice() ? 'BlockDevice' : undefined;
}

/** Source: pkg/volume/volume_linux.go requiresPermissionChange, for a root that may be written. */
const isOwnedBy = (gid: number, { gid: group, mode }: Stats): boolean => group === gid && (mode & 0o2770) === 0o2770;

/** Source: pkg/volume/volume_linux.go SetVolumeOwnership. */
async function ownByGroup(path: string, gid: number): Promise<void> {
  const found = await lstat(path);
  if (found.isSymbolicLink()) return;
  await chown(path, found.uid, gid);
  await chmod(path, (found.mode & 0o7777) | (found.isDirectory() ? 0o2770 : 0o660));
  if (!found.isDirectory()) return;
  for (const name of await readdir(path)) await ownByGroup(join(path, name), gid);
}
