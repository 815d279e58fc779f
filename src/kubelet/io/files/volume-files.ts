import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Mounter } from '../../port.ts';
import type { HostPathKind, VolumeFiles } from '../../ports/files-port.ts';
import { writeAtomically } from './atomic-writer.ts';
import { ownByGroup } from './ownership.ts';
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
    ownByGroup,
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
