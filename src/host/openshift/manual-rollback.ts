/** `hyperedge bundle rollback`: returns this host to its former release, even if no API server responds. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { planManualRollback, type StoreFacts, type SwitchRecord } from '../../openshift/updates/core/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import { storeMembers } from '../status/sources.ts';
import { executablesOf, snapshotName, storeLevel } from './updates.ts';

export interface RollbackOptions {
  readonly root: string | undefined;
  readonly restoreStore: boolean;
}

const POLL_MS = 500;
/** Time limit for the start of the former host process, which is slow on an SD card. */
const START_MS = 180_000;

/** Rolls back. Resolves with the record when the former release runs. Throws CodedErrors 'refused' and 'timeout'. */
export async function rollBackRelease({ root, restoreStore }: RollbackOptions, progress: Progress) {
  const settings = await loadSettings({ root });
  const executables = executablesOf(settings.root, settings.paths);
  const record = await executables.record();
  const planned = planManualRollback(
    {
      record,
      link: await executables.link(),
      hasExecutable: record !== undefined && (await executables.has(record.from, undefined)),
      store: record !== undefined && ownsStore(settings) ? await storeFacts(settings, record) : undefined,
    },
    restoreStore,
  );
  await executables.writeRecord(planned);
  // After a power failure the host process continues from here on its next start.
  await executables.setLink(planned.from);
  progress.step(`the next start runs ${planned.from}`);
  await executables.restart();
  const deadline = clock.monotonicMs() + START_MS;
  for (;;) {
    const present = await executables.record();
    if (present?.phase === 'failed') {
      progress.step(`the host process runs ${planned.from}`);
      return present;
    }
    if (clock.monotonicMs() > deadline)
      throw new CodedError(
        'timeout',
        `${planned.from} did not start within ${START_MS / 1000} s; run: journalctl -u hyperedge`,
      );
    // Timers of the clock do not keep a process running.
    await sleep(POLL_MS);
  }
}

async function storeFacts(settings: Settings, { from }: SwitchRecord): Promise<StoreFacts> {
  const [level, members] = await Promise.all([
    storeLevel(settings).catch(() => undefined),
    storeMembers(settings.root).then(
      (report) => report.members.length,
      () => undefined,
    ),
  ]);
  const name = snapshotName(from);
  const file = join(dirname(settings.paths.updateRecord), name);
  const snapshot = await stat(file).then(
    ({ mtimeMs }) => ({ name, takenAt: timestamp(mtimeMs) }),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new CodedError('unreadable', `${file}: ${messageOf(error)}`, { cause: error });
    },
  );
  return { level, members, snapshot };
}
