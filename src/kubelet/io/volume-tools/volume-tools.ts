import { readFile, rm, rmdir } from 'node:fs/promises';
import type { Log } from '../../../base/log.ts';
import type { VolumeTools } from '../../volumes/tools-port.ts';
import { formatAndMount } from './format.ts';
import { iscsiLogin, iscsiLogout, iscsiSessions } from './iscsi.ts';
import { attachLoop, detachLoop, makeImage, resizeLoop } from './loop.ts';
import { mount, shareMounts, unmount, unshareMounts } from './mounts.ts';
import { limitDirectory } from './quota.ts';

export function createVolumeTools({ log }: { readonly log: Log }): VolumeTools {
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
