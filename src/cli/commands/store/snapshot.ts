import { existsSync } from 'node:fs';
import {
  type Command,
  type Flag,
  type FlagValues,
  integerFlag,
  ROOT_FLAG,
  stringFlag,
  UsageError,
} from '../../command.ts';
import { checkFormat, humanBytes, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { kept, STORE_FLAGS, storeAccess } from '../../store-flags.ts';

const DIRECTORY_FLAG: Flag = {
  type: 'string',
  value: 'DIR',
  help: 'snapshot directory (default /var/lib/origin/snapshots)',
};

async function directoryOf(flags: FlagValues): Promise<string> {
  const { snapshotDirectory } = await import('../../../host/store/restore-target.ts');
  return stringFlag(flags, 'directory') ?? snapshotDirectory(stringFlag(flags, 'root'));
}

export const saveCommand: Command = {
  usage: 'snapshot save [FILE] [-o json|yaml]',
  summary: 'Saves a snapshot of the running store.',
  description: 'Verifies its SHA-256 and writes it with mode 0600. Default: a new file in the snapshot directory.',
  flags: {
    'if-changed': { type: 'boolean', help: 'only if the newest snapshot has another revision' },
    keep: { type: 'string', value: 'N', help: 'then remove all but the N newest snapshots' },
    output: OUTPUT_FLAG,
    directory: DIRECTORY_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [0, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const { isUnchanged, pruneSnapshots, saveSnapshot } = await import('../../../host/store/administration.ts');
    const [file] = positionals;
    const keep = integerFlag(flags, 'keep', 1, 1000);
    const ifChanged = flags['if-changed'] === true;
    if (file !== undefined && (keep !== undefined || ifChanged))
      throw new UsageError('--keep and --if-changed apply to the snapshot directory; omit FILE');
    const directory = await directoryOf(flags);
    const target = file === undefined ? { directory } : { file };
    const admin = (await storeAccess(flags)).open();
    try {
      if (ifChanged && (await kept(isUnchanged(admin, directory)))) {
        out.stdout('unchanged since the newest snapshot\n');
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
  summary: 'Lists the snapshots of this host, newest first, and verifies their SHA-256.',
  flags: { output: OUTPUT_FLAG, directory: DIRECTORY_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const { listSnapshots } = await import('../../../host/store/administration.ts');
    const directory = await directoryOf(flags);
    if (stringFlag(flags, 'directory') !== undefined && !existsSync(directory))
      throw new UsageError(`--directory=${directory}: does not exist; give the directory of the snapshots`);
    const found = await listSnapshots(directory, true);
    const document = await printDocument(
      flags,
      found.map(({ takenMs, ...each }) => ({ ...each, used: new Date(takenMs).toISOString() })),
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
  summary: 'Verifies every row of a snapshot and shows its content.',
  flags: { output: OUTPUT_FLAG },
  arguments: [1, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const { snapshotStatus } = await import('../../../host/store/administration.ts');
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
  summary: 'Creates a data directory from a snapshot or from a running etcd.',
  description: `The restored member starts a new cluster with new ids. Without flags it becomes the store of this host, whose data directory
must be empty. For a cluster of several members, run it on each host with the same file, --initial-cluster and token.
--from-etcd keeps keys, values, leases, versions, and create and mod revisions at one revision (and so resource versions);
earlier history, users and roles are not kept.`,
  flags: {
    'data-dir': { type: 'string', value: 'DIR', help: 'the new data directory (default: this host’s)' },
    name: { type: 'string', value: 'NAME', help: 'name of the member (default: this host’s)' },
    'initial-cluster': { type: 'string', value: 'NAME=URL,…', help: 'members of the new cluster (default: this one)' },
    'initial-cluster-token': { type: 'string', value: 'TOKEN', help: 'distinguishes clusters with equal members' },
    'initial-advertise-peer-urls': { type: 'string', value: 'URLS', help: 'peer URLs of this member' },
    'skip-hash-check': { type: 'boolean', help: 'accept a file without SHA-256, such as a copied database file' },
    'bump-revision': {
      type: 'string',
      value: 'N',
      help: 'add N to the revision, so that client caches are invalidated',
    },
    'mark-compacted': { type: 'boolean', help: 'with --bump-revision: reject watches from earlier revisions' },
    'from-etcd': { type: 'boolean', help: 'import the content of the etcd at --endpoints' },
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
      import('../../../host/store/administration.ts'),
      import('../../../host/store/restore-target.ts'),
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
  summary: 'Writes the keys and leases of a snapshot into a running etcd through its API.',
  description:
    'Kept: keys, values, leases with their ids and full time. Not kept: revisions, versions, history, users and roles.',
  flags: {
    overwrite: { type: 'boolean', help: 'write even if the target store has keys' },
    output: OUTPUT_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [1, 1],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    if (stringFlag(flags, 'endpoints') === undefined) throw new UsageError('snapshot push: give --endpoints');
    const { pushSnapshot } = await import('../../../host/store/administration.ts');
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

/** Prints progress, on terminals only. */
function progressOf(write: (text: string) => void): (done: number, of: number) => void {
  if (!process.stderr.isTTY) return () => {};
  return (done, of) => write(`\r${done} of ${of} keys${done >= of ? '\n' : ''}`);
}

export const scheduleCommand: Command = {
  usage: 'snapshot schedule [--every 6h] [--keep 8] [--directory DIR] [--off|--on]',
  summary: 'Shows or changes the snapshot schedule of this host’s store.',
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
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const [{ EVERY_FORMAT, parseEvery, readSchedule, writeSchedule }, { canonicalRoot, pathsBelow }] =
      await Promise.all([
        import('../../../store/config/snapshot-schedule.ts'),
        import('../../../host/config/settings.ts'),
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
