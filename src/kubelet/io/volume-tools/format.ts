/**
 * Creates and mounts file systems on block devices. Source: k8s.io/mount-utils mount_linux.go SafeFormatAndMount;
 * blkid(8).
 */
import { CodedError, messageOf } from '../../../base/errors.ts';
import { mount } from './mounts.ts';
import { result, run } from './run-tool.ts';

/** Exit code of blkid(8): no signature was found. */
const NOT_FOUND = 2;
const PROBE_TIMEOUT_MS = 60_000;
const MIB = 1 << 20;
/**
 * Number of MiBs read at the start of a device. Signatures of file systems are in the first MiBs or in the last MiB.
 */
const FIRST_MIB = 4;

/**
 * Mounts a device, after creating a file system on a blank one. A device counts as blank only if both of its ends were
 * read and blkid found no signature. Otherwise throws CodedError 'mount' or 'tool' and changes nothing.
 */
export async function formatAndMount(device: string, target: string, fsType: string, readOnly: boolean): Promise<void> {
  if (!/^(?:ext[234]|xfs|btrfs)$/.test(fsType)) {
    throw new CodedError('mount', `fsType ${JSON.stringify(fsType)}: not supported; use ext4, xfs or btrfs`);
  }
  const present = await signatureOf(device);
  if (present === undefined) {
    if (readOnly) throw new CodedError('mount', `${device}: cannot mount an unformatted disk in read-only mode`);
    await run(`mkfs.${fsType}`, [device]);
  }
  try {
    await mount({ type: fsType, source: device, target, options: readOnly ? ['ro'] : ['defaults'] });
  } catch (error) {
    if (present === undefined || present === fsType) throw error;
    throw new CodedError(
      'mount',
      `${device}: the disk contains ${present}, but fsType is ${fsType}; correct fsType or wipe the disk: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** File system or partition table of a device; undefined if it is blank. */
async function signatureOf(device: string): Promise<string | undefined> {
  try {
    // Needed because blkid also exits with 2 for a device that it cannot open or read.
    await readEnds(device);
    const args = ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device];
    const { exitCode, stdout, stderr } = await result('blkid', args, PROBE_TIMEOUT_MS);
    const output = stdout.trim();
    if (exitCode === NOT_FOUND && output === '' && stderr.trim() === '') return undefined;
    const value = (key: string): string | undefined => new RegExp(`^${key}=(.+)$`, 'm').exec(output)?.[1];
    const found = value('TYPE') ?? (value('PTTYPE') === undefined ? undefined : 'a partition table');
    if (exitCode === 0 && found !== undefined) return found;
    const text = [stderr.trim(), output].find((each) => each !== '') ?? 'no output';
    throw new CodedError('tool', `blkid: exit code ${exitCode}: ${text}`);
  } catch (error) {
    throw new CodedError(
      'mount',
      `${device}: content not determined, so the disk is neither formatted nor mounted; check it with wipefs(8): ${messageOf(error)}`,
      { cause: error },
    );
  }
}

async function readEnds(device: string): Promise<void> {
  const kind = (await run('stat', ['-L', '-c', '%F', '--', device], PROBE_TIMEOUT_MS)).trim();
  const size =
    kind === 'block special file'
      ? await run('blockdev', ['--getsize64', device], PROBE_TIMEOUT_MS)
      : await run('stat', ['-L', '-c', '%s', '--', device], PROBE_TIMEOUT_MS);
  const bytes = Number(size);
  if (!(bytes > 0)) throw new CodedError('mount', `${device}: has no capacity`);
  const read = (...range: string[]): Promise<string> =>
    run('dd', [`if=${device}`, 'of=/dev/null', `bs=${MIB}`, 'status=none', ...range], PROBE_TIMEOUT_MS);
  await read(`count=${FIRST_MIB}`);
  await read(`skip=${Math.max(0, Math.floor(bytes / MIB) - 1)}`);
}
