import { type Flag, type FlagValues, stringFlag } from '../../command.ts';

export const DIRECTORY_FLAG: Flag = {
  type: 'string',
  value: 'DIR',
  help: 'snapshot directory (default /var/lib/origin/snapshots)',
};

export async function directoryOf(flags: FlagValues): Promise<string> {
  const { snapshotDirectory } = await import('../../../host/store/restore-target.ts');
  return stringFlag(flags, 'directory') ?? snapshotDirectory(stringFlag(flags, 'root'));
}
