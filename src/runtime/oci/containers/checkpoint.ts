/**
 * Forensic checkpoints (KEP-2008): an archive with CRIU's image of a container, which continues to run, its
 * specification and the files that it has written.
 */
import { chmod, copyFile, mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import type { Trees } from '../../directory-removal/port.ts';
import { RuntimeError } from '../../port.ts';
import { runCommand } from '../command.ts';
import type { Runc } from '../runc.ts';
import type { ContainerRecord } from './records.ts';

const TIMEOUT_MS = 10 * 60_000;

export interface CheckpointInput {
  readonly runc: Runc;
  readonly record: ContainerRecord;
  readonly bundle: string;
  /** Upper overlay directory of the container's root: the files that it has written. */
  readonly upper: string;
  /** Path of the archive. Its directory must be private. */
  readonly location: string;
  readonly trees: Trees;
}

/** Throws RuntimeError 'internal' with the message of the runtime or of CRIU. */
export async function checkpoint({ runc, record, bundle, upper, location, trees }: CheckpointInput): Promise<void> {
  await mkdir(dirname(location), { recursive: true, mode: 0o700 });
  const work = await mkdtemp(join(dirname(location), '.checkpoint-'));
  try {
    const images = join(work, 'checkpoint');
    await mkdir(images, { mode: 0o700 });
    const args = ['checkpoint', '--leave-running', '--image-path', images, '--work-path', work, record.id];
    await runCommand(runc.path, [...runc.globalArgs, ...args], { timeoutMs: TIMEOUT_MS });
    await copyFile(join(bundle, 'config.json'), join(work, 'spec.dump'));
    const { id, name, image, imageId, createdAtMs } = record;
    const config = { id, name, rootfsImageName: image, rootfsImageRef: imageId, createdTime: new Date(createdAtMs) };
    await writeFile(join(work, 'config.dump'), `${JSON.stringify(config)}\n`, { mode: 0o600 });
    if (record.overlay)
      await runCommand('tar', ['-C', upper, '-cf', join(work, 'rootfs-diff.tar'), '.'], { timeoutMs: TIMEOUT_MS });
    const archive = join(work, 'archive.tar');
    await runCommand('tar', ['-C', work, '--exclude=./archive.tar', '-cf', archive, '.'], { timeoutMs: TIMEOUT_MS });
    await chmod(archive, 0o600);
    await rename(archive, location);
  } catch (error) {
    throw new RuntimeError('internal', messageOf(error), { cause: error });
  } finally {
    await trees.remove(work);
  }
}
