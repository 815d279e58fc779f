import type { EtcdAdmin, EtcdMember, MemberReport } from '../../../host/store/administration.ts';
import { type Command, type Flag, type FlagValues, type Invocation, UsageError } from '../../command.ts';
import { checkFormat, humanBytes, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { kept, STORE_FLAGS, storeAccess } from '../../store-flags.ts';

const FLAGS: Readonly<Record<string, Flag>> = { output: OUTPUT_FLAG, ...STORE_FLAGS };

export const listCommand: Command = {
  usage: 'members list [-o json|yaml|wide]',
  summary: 'Lists the members of the store’s cluster with their status.',
  description: 'Same as hyperedge members. Exit code 1 if a member is unreachable.',
  flags: FLAGS,
  arguments: [0, 0],
  run: (invocation) => kept(list(invocation)),
};

export const membersCommand: Command = { ...listCommand, usage: 'members [-o json|yaml|wide]' };

async function list({ flags, out }: Invocation): Promise<number> {
  checkFormat(flags);
  const { clusterReport } = await import('../../../host/store/administration.ts');
  const { members, quorum } = await clusterReport(await storeAccess(flags));
  out.stdout((await printDocument(flags, members)) ?? tableOf(members, flags['output'] === 'wide'));
  if (!quorum) {
    out.stderr(
      'hyperedge: no quorum: the store rejects writes; the list is one member’s own configuration. See hyperedge members recover --help\n',
    );
  }
  const voters = members.filter(({ role }) => role !== 'learner').length;
  if (voters % 2 === 0) {
    out.stderr(
      `hyperedge: warning: ${voters} voting members survive no more failures than ${voters - 1}; add or remove one\n`,
    );
  }
  for (const { name, id, errors } of members) {
    for (const error of errors) out.stderr(`hyperedge: ${name === '' ? id : name}: ${error}\n`);
  }
  return quorum && members.every(({ state }) => state !== 'unreachable') ? 0 : 1;
}

function tableOf(members: readonly MemberReport[], wide: boolean): string {
  const known = (value: number | string | undefined): string => (value === undefined ? '-' : String(value));
  const bytes = (value: number | undefined): string => (value === undefined ? '-' : humanBytes(value));
  return printTable(
    [
      'NAME',
      'ID',
      'ROLE',
      'STATE',
      'LAG',
      'REVISION',
      'DB SIZE',
      'VERSION',
      ...(wide ? ['IN USE', 'TERM', 'INDEX', 'APPLIED', 'PEER URLS', 'CLIENT URLS'] : []),
    ],
    members.map((member) => [
      member.name === '' ? '-' : member.name,
      member.id,
      member.role,
      member.state,
      known(member.lag),
      known(member.revision),
      bytes(member.dbBytes),
      known(member.version),
      ...(wide
        ? [
            bytes(member.dbInUseBytes),
            known(member.raftTerm),
            known(member.raftIndex),
            known(member.raftApplied),
            member.peerUrls.join() || '-',
            member.clientUrls.join() || '-',
          ]
        : []),
    ]),
  );
}

export const addCommand: Command = {
  usage: 'members add NAME PEER-URL[,…] [--learner]',
  summary: 'Adds a member to the store’s cluster, before its first start.',
  description: 'Prints the environment of the new member’s first start, as etcdctl does.',
  flags: { learner: { type: 'boolean', help: 'add as non-voting learner, see members promote' }, ...FLAGS },
  arguments: [2, 2],
  run: async ({ flags, positionals, out }) => {
    const [name = '', urls = ''] = positionals;
    for (const url of urls.split(','))
      if (!/^https?:\/\/[^/]+:\d+$/.test(url))
        throw new UsageError(`members add: "${url}" is not a peer URL; give one such as https://10.0.0.2:2380`);
    return withStore(flags, async (admin) => {
      const { added, members } = await admin.addMember(urls.split(','), flags['learner'] === true);
      const all = [...members.filter(({ id }) => id !== added.id), { ...added, name }];
      const cluster = all.flatMap((each) =>
        each.peerUrls.map((url) => `${each.name === '' ? each.id : each.name}=${url}`),
      );
      const environment = {
        ETCD_NAME: name,
        ETCD_INITIAL_CLUSTER: cluster.join(),
        ETCD_INITIAL_ADVERTISE_PEER_URLS: urls,
        ETCD_INITIAL_CLUSTER_STATE: 'existing',
      };
      const document = await printDocument(flags, { ...added, name, environment });
      const lines = Object.entries(environment).map(([key, value]) => `${key}="${value}"\n`);
      out.stdout(
        document ?? `member ${added.id} added; start it with an empty data directory and:\n\n${lines.join('')}`,
      );
      return 0;
    });
  },
};

export const removeCommand: Command = {
  usage: 'members remove NAME|ID',
  summary: 'Removes a member from the store’s cluster; its process exits.',
  flags: FLAGS,
  arguments: [1, 1],
  run: ({ flags, positionals, out }) =>
    withStore(flags, async (admin) => {
      const member = await named(admin, positionals[0] ?? '');
      await admin.removeMember(member.id);
      out.stdout((await printDocument(flags, member)) ?? `member ${titleOf(member)} removed\n`);
      return 0;
    }),
};

export const promoteCommand: Command = {
  usage: 'members promote NAME|ID',
  summary: 'Promotes a learner to a voting member.',
  flags: FLAGS,
  arguments: [1, 1],
  run: ({ flags, positionals, out }) =>
    withStore(flags, async (admin) => {
      const member = await named(admin, positionals[0] ?? '');
      await admin.promoteMember(member.id);
      out.stdout((await printDocument(flags, { ...member, learner: false })) ?? `member ${titleOf(member)} promoted\n`);
      return 0;
    }),
};

function titleOf({ name, id }: EtcdMember): string {
  return name === '' ? id : `${name} (${id})`;
}

async function named(admin: EtcdAdmin, wanted: string): Promise<EtcdMember> {
  const { memberNamed } = await import('../../../host/store/administration.ts');
  return memberNamed(await admin.members(true), wanted);
}

async function withStore(flags: FlagValues, use: (admin: EtcdAdmin) => Promise<number>): Promise<number> {
  checkFormat(flags);
  const admin = (await storeAccess(flags)).open();
  try {
    return await kept(use(admin));
  } finally {
    admin.close();
  }
}
