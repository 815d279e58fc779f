import type { DirectVolumeHost } from './type.ts';

/** Mounts a tmpfs at the directory. Returns whether this call created it. `sizeBytes`: limit of its content. */
export async function makeTmpfs(
  { files, mounts }: Pick<DirectVolumeHost, 'files' | 'mounts'>,
  directory: string,
  mode: number,
  sizeBytes?: number,
): Promise<boolean> {
  const isNew = await files.makeDirectory(directory);
  if (!isNew && (await mounts.isMountPoint(directory))) return false;
  await mounts.tmpfs(directory, { mode, ...(sizeBytes === undefined ? {} : { sizeBytes }) });
  return true;
}
