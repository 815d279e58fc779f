import { bytesText } from '../../../base/text/bytes-text.ts';
import type { MemberReport } from '../../../host/store/administration.ts';
import type { Command, Invocation } from '../../command.ts';
import { printDocument, printTable } from '../../printers.ts';
import { keepAliveDuring, storeAccess } from '../../store-flags.ts';
import { FLAGS } from './store-access.ts';

export const membersListCommand: Command = {
  name: 'members list',
  usage: '[-o json|yaml|wide]',
  summary: 'list the store’s members with their status; same as members',
  description: 'Same as hyperedge members. Exit code 1 if a member is unreachable.',
  flags: FLAGS,
  arguments: [0, 0],
  examples: [['Members with sizes and addresses', 'members list -o wide']],
  run: (invocation) => keepAliveDuring(list(invocation)),
};

async function list({ flags, out }: Invocation): Promise<number> {
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
      `hyperedge: warning: ${voters} voting members tolerate no more failures than ${voters - 1}; add or remove one\n`,
    );
  }
  for (const { name, id, errors } of members) {
    for (const error of errors) out.stderr(`hyperedge: ${name === '' ? id : name}: ${error}\n`);
  }
  return quorum && members.every(({ state }) => state !== 'unreachable') ? 0 : 1;
}

function tableOf(members: readonly MemberReport[], wide: boolean): string {
  const known = (value: number | string | undefined): string => (value === undefined ? '-' : String(value));
  const bytes = (value: number | undefined): string => (value === undefined ? '-' : bytesText(value));
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
