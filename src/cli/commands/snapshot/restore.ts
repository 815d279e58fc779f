import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, integerFlag, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { keepAliveDuring, STORE_FLAGS, storeAccess } from '../../store-flags.ts';

export const snapshotRestoreCommand: Command = {
  name: 'snapshot restore',
  usage: 'FILE | --from-etcd --endpoints URLS [--data-dir DIR …]',
  summary: 'create a data directory from a snapshot or from a running etcd',
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
  values: ['snapshot'],
  examples: [
    ['Restore the store of this host', 'snapshot restore /backup/store.db'],
    ['Import from a running etcd', 'snapshot restore --from-etcd --endpoints https://10.0.0.9:2379'],
  ],
  run: async ({ flags, positionals, out, progress }) => {
    const [file] = positionals;
    const fromEtcd = flags['from-etcd'] === true;
    if (fromEtcd === (file !== undefined)) throw new UsageError('snapshot restore: give a file, or --from-etcd');
    if (fromEtcd && stringFlag(flags, 'endpoints') === undefined) throw new UsageError('--from-etcd: give --endpoints');
    const bumpRevision = integerFlag(flags, 'bump-revision', 1, 1e12) ?? 0;
    if (bumpRevision > 0 !== (flags['mark-compacted'] === true) || (fromEtcd && bumpRevision > 0))
      throw new UsageError('--bump-revision and --mark-compacted must be given together, and with a file');
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
      const options = { skipHashCheck, bumpRevision };
      const restored = await transferring(progress, `restoring ${file}`, (onProgress) =>
        keepAliveDuring(restoreSnapshot(file, target, options, onProgress)),
      );
      const document = await printDocument(flags, { ...restored, name, dataDirectory });
      out.stdout(
        document ??
          `${dataDirectory}: revision ${restored.revision}, member ${name} (${restored.memberId}) of the new cluster ${restored.clusterId}\n`,
      );
      return 0;
    }
    const admin = (await storeAccess(flags)).open();
    try {
      const restored = await transferring(
        progress,
        'importing',
        (onProgress) => keepAliveDuring(restoreFromEtcd(admin, target, onProgress)),
        'keys',
      );
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
