/** Paths of the host. Source: pkg/volume/hostpath. */
import type { HostPathVolumeSource } from '../../../api/generated/core/v1.ts';
import type { ForeignFiles } from '../../ports/files-port.ts';
import type { DirectType } from './type.ts';

export const hostPath: DirectType = {
  way: 'direct',
  source: 'hostPath',
  isForeign: true,
  create: ({ foreign }) => ({
    setUp: async (_, { hostPath: source }) => {
      await prepareHostPath(source ?? { path: '' }, foreign);
    },
    pathOf: (_, { hostPath: source }) => source?.path ?? '',
  }),
};

/** Checks or creates the path according to the volume's type. Throws with upstream's text. */
export async function prepareHostPath(source: HostPathVolumeSource, files: ForeignFiles): Promise<string> {
  const { path } = source;
  if (path.split('/').includes('..')) throw new Error(`invalid path ${JSON.stringify(path)}: must not contain '..'`);
  const type = source.type ?? '';
  if (type === 'DirectoryOrCreate') await files.makeDirectory(path);
  if (type === 'FileOrCreate') await files.makeFile(path);
  if (type === '') {
    // The runtime bind-mounts the path. A missing path becomes a directory, as container engines do.
    if (!(await files.isPresent(path))) await files.makeDirectory(path);
    return path;
  }
  const expected = type.replace('OrCreate', '');
  if ((await files.kindOf(path)) !== expected)
    throw new Error(`hostPath type check failed: ${path} is not ${DESCRIPTION[expected] ?? `a ${expected}`}`);
  return path;
}

const DESCRIPTION: Readonly<Record<string, string>> = {
  Directory: 'a directory',
  File: 'a file',
  Socket: 'a socket file',
  CharDevice: 'a character device',
  BlockDevice: 'a block device',
};
