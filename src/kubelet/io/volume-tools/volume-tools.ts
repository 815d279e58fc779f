import { readFile, rm, rmdir } from 'node:fs/promises';
import type { Log } from '../../../base/log.ts';
import type { VolumeTools } from '../../volumes/tools-port.ts';
import { createOnce } from './first-use.ts';
import { formatAndMount } from './format.ts';
import { iscsiLogin, iscsiLogout, iscsiSessions } from './iscsi.ts';
import { attachLoop, detachLoop, makeImage, resizeLoop } from './loop.ts';
import { mount, shareMounts, unmount, unshareMounts } from './mounts.ts';
import { limitDirectory } from './quota.ts';

export interface VolumeToolsOptions {
  /** Directory with the records of created volumes. It is not on the disk of these volumes. */
  readonly createdVolumes: string;
  readonly log: Log;
}

export function createVolumeTools({ createdVolumes, log }: VolumeToolsOptions): VolumeTools {
  return {
    read: (path) => readFile(path, 'utf8').catch(ignoring('ENOENT')),
    removeFile: (path) => rm(path, { force: true }),
    async removeEmptyDirectory(path) {
      await rmdir(path).catch(ignoring('ENOENT', 'ENOTEMPTY', 'EEXIST'));
    },
    mount,
    unmount,
    shareMounts,
    unshareMounts,
    makeImage,
    createOnce: (path, create) => createOnce(createdVolumes, path, create),
    attachLoop,
    resizeLoop,
    detachLoop,
    limitDirectory: (directory, bytes) => limitDirectory(directory, bytes, log),
    iscsiLogin,
    iscsiSessions,
    iscsiLogout,
    formatAndMount,
  };
}

const ignoring =
  (...codes: readonly string[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof Error && 'code' in error && codes.includes(String(error.code)))) throw error;
    return undefined;
  };
