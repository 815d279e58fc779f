import { readFile, rm, rmdir } from 'node:fs/promises';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { VolumeTools } from '../../components/kubelet/volumes/tools-port.ts';
import { iscsiLogin, iscsiLogout } from './iscsi.ts';
import { attachLoop, detachLoop, makeImage, resizeLoop } from './loop.ts';
import { mount, shareMounts, unmount, unshareMounts } from './mounts.ts';
import { limitDirectory } from './quota.ts';
import { run } from './run.ts';

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

/** A device with any signature is never formatted. Source: k8s.io/mount-utils SafeFormatAndMount. */
async function formatAndMount(device: string, target: string, fsType: string, readOnly: boolean): Promise<void> {
  if (!/^(?:ext[234]|xfs|btrfs)$/.test(fsType)) {
    throw new CodedError('mount', `fsType ${JSON.stringify(fsType)}: not supported; use ext4, xfs or btrfs`);
  }
  const signature = await run('blkid', ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device]).catch(() => '');
  if (signature.trim() === '' && !readOnly) await run(`mkfs.${fsType}`, [device]);
  await mount({ type: fsType, source: device, target, options: readOnly ? ['ro'] : ['defaults'] });
}
