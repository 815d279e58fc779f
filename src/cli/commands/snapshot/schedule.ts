import { type Command, integerFlag, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { DIRECTORY_FLAG } from './directory.ts';

export const snapshotScheduleCommand: Command = {
  name: 'snapshot schedule',
  usage: '[--every 6h] [--keep 8] [--directory DIR] [--off|--on]',
  summary: 'show or change the snapshot schedule of this host’s store',
  description: `The host process saves a snapshot when the store has changed since the last one; an overdue snapshot is saved after
the start. Default: one a day, and three are kept.`,
  flags: {
    every: { type: 'string', value: 'TIME', help: 'minutes, hours or days: 30m, 6h, 7d' },
    keep: { type: 'string', value: 'N', help: 'number of snapshots to keep' },
    directory: DIRECTORY_FLAG,
    off: { type: 'boolean', help: 'disable the schedule' },
    on: { type: 'boolean', help: 'enable the schedule' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['Show the schedule', 'snapshot schedule'],
    ['Save every six hours, keep eight', 'snapshot schedule --every 6h --keep 8'],
  ],
  run: async ({ flags, out }) => {
    const [{ EVERY_FORMAT, parseEvery, readSchedule, writeSchedule }, { canonicalRoot, pathsBelow }] =
      await Promise.all([
        import('../../../store/config/snapshot-schedule.ts'),
        import('../../../host/config/paths.ts'),
      ]);
    const paths = pathsBelow(await canonicalRoot(stringFlag(flags, 'root')));
    const before = await readSchedule(paths.snapshotSchedule, paths.snapshots);
    const every = stringFlag(flags, 'every');
    if (every !== undefined && parseEvery(every) === undefined)
      throw new UsageError(`--every=${every}: ${EVERY_FORMAT}`);
    if (flags['on'] === true && flags['off'] === true) throw new UsageError('give --on or --off');
    const directory = stringFlag(flags, 'directory');
    if (directory !== undefined && !directory.startsWith('/'))
      throw new UsageError(`--directory=${directory}: give an absolute path`);
    const schedule = {
      enabled: flags['off'] === true ? false : flags['on'] === true ? true : before.enabled,
      every: every ?? before.every,
      keep: integerFlag(flags, 'keep', 1, 1000) ?? before.keep,
      directory: directory ?? before.directory,
    };
    if (JSON.stringify(schedule) !== JSON.stringify(before)) {
      const { callControl } = await import('../../../host/control/control.ts');
      await writeSchedule(paths.snapshotSchedule, schedule);
      // If the host process is not running, it reads the schedule when it starts.
      await callControl(paths.controlSocket, 'POST', '/snapshots').catch((error: Error & { code?: string }) => {
        if (error.code !== 'not-running') throw error;
      });
    }
    const { enabled, keep } = schedule;
    const line = enabled
      ? `every ${schedule.every}, the newest ${keep} are kept in ${schedule.directory}\n`
      : 'off: this host saves no scheduled snapshots\n';
    out.stdout((await printDocument(flags, schedule)) ?? line);
    return 0;
  },
};
