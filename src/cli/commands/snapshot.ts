import {
  type Command,
  type Flag,
  type FlagValues,
  integerFlag,
  ROOT_FLAG,
  stringFlag,
  UsageError,
} from '../command.ts';
import { checkFormat, humanBytes, OUTPUT_FLAG, printDocument, printTable } from '../printers.ts';
import { kept, STORE_FLAGS, storeAccess } from '../store-flags.ts';

const DIRECTORY_FLAG: Flag = {
  type: 'string',
  value: 'DIR',
  help: 'where snapshots are kept (default /var/lib/origin/snapshots)',
};

async function directoryOf(flags: FlagValues): Promise<string> {
  const { snapshotDirectory } = await import('../../roles/etcd/restore-target.ts');
  return stringFlag(flags, 'directory') ?? snapshotDirectory(stringFlag(flags, 'root'));
}

export const saveCommand: Command = {
  usage: 'snapshot save [FILE] [-o json|yaml]',
  summary: 'Takes a snapshot of the store while it runs.',
  description:
    'Checked by its SHA-256, flushed, readable for this user only. Without FILE it goes where snapshots are kept.',
  flags: {
    'if-changed': { type: 'boolean', help: 'only when the newest that is kept is of another revision' },
    keep: { type: 'string', value: 'N', help: 'afterwards remove all but the N newest that are kept' },
    output: OUTPUT_FLAG,
    directory: DIRECTORY_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [0, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const { isUnchanged, pruneSnapshots, saveSnapshot } = await import('../../roles/etcd/administration.ts');
    const [file] = positionals;
    const keep = integerFlag(flags, 'keep', 1, 1000);
    const ifChanged = flags['if-changed'] === true;
    if (file !== undefined && (keep !== undefined || ifChanged))
      throw new UsageError('--keep and --if-changed are about the directory of snapshots; leave FILE out');
    const directory = await directoryOf(flags);
    const target = file === undefined ? { directory } : { file };
    const admin = (await storeAccess(flags)).open();
    try {
      if (ifChanged && (await kept(isUnchanged(admin, directory)))) {
        out.stdout('nothing has changed since the newest snapshot\n');
        return 0;
      }
      const saved = await kept(saveSnapshot(admin, target, Date.now()));
      if (keep !== undefined) await pruneSnapshots(directory, keep, saved.file);
      const document = await printDocument(flags, saved);
      out.stdout(document ?? `${saved.file}: revision ${saved.revision}, ${humanBytes(saved.bytes)}\n`);
      return 0;
    } finally {
      admin.close();
    }
  },
};

export const listCommand: Command = {
  usage: 'snapshot list [-o json|yaml|wide]',
  summary: 'Shows the snapshots on this host, newest first, each checked by its SHA-256.',
  flags: { output: OUTPUT_FLAG, directory: DIRECTORY_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const { listSnapshots } = await import('../../roles/etcd/administration.ts');
    const found = await listSnapshots(await directoryOf(flags), true);
    const document = await printDocument(
      flags,
      found.map(({ takenMs, ...each }) => ({ ...each, taken: new Date(takenMs).toISOString() })),
    );
    const rows = found.map(({ file, revision, takenMs, bytes, problem }) => [
      file,
      String(revision),
      ageOf(Date.now() - takenMs),
      humanBytes(bytes),
      problem === '' ? 'yes' : 'NO',
    ]);
    out.stdout(document ?? printTable(['FILE', 'REVISION', 'AGE', 'SIZE', 'VERIFIED'], rows));
    for (const { problem } of found) if (problem !== '') out.stderr(`hyperedge: ${problem}\n`);
    return found.every(({ problem }) => problem === '') ? 0 : 1;
  },
};

function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

export const statusCommand: Command = {
  usage: 'snapshot status FILE [-o json|yaml]',
  summary: 'Reads a snapshot and checks every row of it.',
  flags: { output: OUTPUT_FLAG },
  arguments: [1, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const { snapshotStatus } = await import('../../roles/etcd/administration.ts');
    const status = await snapshotStatus(positionals[0] ?? '');
    const { revision, compacted, keys, revisions, hash, bytes, sha256, memberId } = status;
    const lines = printTable(
      ['REVISION', 'COMPACTED', 'KEYS', 'ROWS', 'HASH', 'SIZE', 'FROM MEMBER'],
      [[...[revision, compacted, keys, revisions].map(String), hash, humanBytes(bytes), memberId]],
    );
    out.stdout((await printDocument(flags, status)) ?? `${lines}sha256 ${sha256}\n`);
    return 0;
  },
};

export const restoreCommand: Command = {
  usage: 'snapshot restore FILE | --from-etcd --endpoints URLS [--data-dir DIR …]',
  summary: 'Makes a new data directory from a snapshot, or from all that a running etcd holds.',
  description: `The restored member begins a new cluster with ids of its own. Without flags it becomes the store of this host, whose data
directory has to be empty. For a cluster of several, run it on each host with the same file, --initial-cluster and token.
--from-etcd keeps keys, values, leases, versions, and create and mod revisions as of one moment (and so clients' resource
versions); history before it, users and roles are not kept.`,
  flags: {
    'data-dir': { type: 'string', value: 'DIR', help: 'the new data directory (default: this host’s)' },
    name: { type: 'string', value: 'NAME', help: 'name of the member (default: this host’s)' },
    'initial-cluster': { type: 'string', value: 'NAME=URL,…', help: 'members of the new cluster (default: this one)' },
    'initial-cluster-token': { type: 'string', value: 'TOKEN', help: 'sets clusters with equal members apart' },
    'initial-advertise-peer-urls': { type: 'string', value: 'URLS', help: 'where other members reach this one' },
    'skip-hash-check': { type: 'boolean', help: 'take a file without SHA-256, such as a copy of a data directory’s' },
    'bump-revision': { type: 'string', value: 'N', help: 'add N to the revision, so that caches of clients notice' },
    'mark-compacted': { type: 'boolean', help: 'with --bump-revision: refuse watches from earlier revisions' },
    'from-etcd': { type: 'boolean', help: 'take over what the etcd at --endpoints holds' },
    output: OUTPUT_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [0, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const [file] = positionals;
    const fromEtcd = flags['from-etcd'] === true;
    if (fromEtcd === (file !== undefined)) throw new UsageError('snapshot restore: give a file, or --from-etcd');
    if (fromEtcd && stringFlag(flags, 'endpoints') === undefined) throw new UsageError('--from-etcd: give --endpoints');
    const bumpRevision = integerFlag(flags, 'bump-revision', 1, 1e12) ?? 0;
    if (bumpRevision > 0 !== (flags['mark-compacted'] === true) || (fromEtcd && bumpRevision > 0))
      throw new UsageError('--bump-revision and --mark-compacted go together, and with a file');
    const [{ restoreSnapshot, restoreFromEtcd }, { restoreTarget }] = await Promise.all([
      import('../../roles/etcd/administration.ts'),
      import('../../roles/etcd/restore-target.ts'),
    ]);
    const target = await restoreTarget({
      root: stringFlag(flags, 'root'),
      dataDir: stringFlag(flags, 'data-dir'),
      name: stringFlag(flags, 'name'),
      initialCluster: stringFlag(flags, 'initial-cluster'),
      initialClusterToken: stringFlag(flags, 'initial-cluster-token'),
      initialAdvertisePeerUrls: stringFlag(flags, 'initial-advertise-peer-urls'),
    });
    const { dataDirectory, name } = target;
    if (file !== undefined) {
      const skipHashCheck = flags['skip-hash-check'] === true;
      const restored = await kept(restoreSnapshot(file, target, { skipHashCheck, bumpRevision }));
      const document = await printDocument(flags, { ...restored, name, dataDirectory });
      out.stdout(
        document ??
          `${dataDirectory}: revision ${restored.revision}, member ${name} (${restored.memberId}) of the new cluster ${restored.clusterId}\n`,
      );
      return 0;
    }
    const admin = (await storeAccess(flags)).open();
    try {
      const restored = await kept(restoreFromEtcd(admin, target, progressOf(out.stderr)));
      const document = await printDocument(flags, { ...restored, name, dataDirectory });
      out.stdout(
        document ??
          `${dataDirectory}: ${restored.keys} keys and ${restored.leases} leases at revision ${restored.revision}, member ${name} (${restored.memberId}) of the new cluster ${restored.clusterId}\nkept: keys, values, versions, create and mod revisions, leases; not kept: history before revision ${restored.revision}, users and roles\n`,
      );
      return 0;
    } finally {
      admin.close();
    }
  },
};

export const pushCommand: Command = {
  usage: 'snapshot push FILE --endpoints URLS [--overwrite]',
  summary: 'Writes what a snapshot holds into a running etcd, through its API.',
  description:
    'Kept: keys, values, leases with their ids and full time. Not kept: revisions, versions, history, users and roles.',
  flags: {
    overwrite: { type: 'boolean', help: 'even if the other store holds keys already' },
    output: OUTPUT_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [1, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    if (stringFlag(flags, 'endpoints') === undefined) throw new UsageError('snapshot push: give --endpoints');
    const { pushSnapshot } = await import('../../roles/etcd/administration.ts');
    const admin = (await storeAccess(flags)).open();
    try {
      const overwrite = flags['overwrite'] === true;
      const pushed = await kept(pushSnapshot(positionals[0] ?? '', admin, overwrite, progressOf(out.stderr)));
      const document = await printDocument(flags, pushed);
      out.stdout(document ?? `${pushed.keys} keys and ${pushed.leases} leases written; revision ${pushed.revision}\n`);
      return 0;
    } finally {
      admin.close();
    }
  },
};

/** On a terminal, a line that is written over; elsewhere nothing, the result says it all. */
function progressOf(write: (text: string) => void): (done: number, of: number) => void {
  if (!process.stderr.isTTY) return () => {};
  return (done, of) => write(`\r${done} of ${of} keys${done >= of ? '\n' : ''}`);
}

export const scheduleCommand: Command = {
  usage: 'snapshot schedule [--every 6h] [--keep 8] [--directory DIR] [--off|--on]',
  summary: 'Shows or changes how often this host takes snapshots of its store by itself.',
  description: `The host process takes them, when the store has changed since the last; one that is overdue because the machine was
off is made up for. Without a word of it: one a day, three are kept.`,
  flags: {
    every: { type: 'string', value: 'TIME', help: 'minutes, hours or days: 30m, 6h, 7d' },
    keep: { type: 'string', value: 'N', help: 'how many are kept' },
    directory: DIRECTORY_FLAG,
    off: { type: 'boolean', help: 'take none' },
    on: { type: 'boolean', help: 'take them again' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const [{ EVERY_FORMAT, parseEvery, readSchedule, writeSchedule }, { canonicalRoot, pathsBelow }] =
      await Promise.all([import('../../roles/config/snapshot-schedule.ts'), import('../../roles/config/settings.ts')]);
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
      const { askControl } = await import('../../roles/host/control.ts');
      await writeSchedule(paths.snapshotSchedule, schedule);
      // A host process that does not run reads it when it starts.
      await askControl(paths.controlSocket, 'POST', '/snapshots').catch((error: Error & { code?: string }) => {
        if (error.code !== 'not-running') throw error;
      });
    }
    const { enabled, keep } = schedule;
    const line = enabled
      ? `every ${schedule.every}, the newest ${keep} are kept, in ${schedule.directory}\n`
      : 'off: this host takes no snapshots by itself\n';
    out.stdout((await printDocument(flags, schedule)) ?? line);
    return 0;
  },
};
