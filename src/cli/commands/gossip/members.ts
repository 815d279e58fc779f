import type { AgentMember } from '../../../host/network/ring.ts';
import { type Command, ROOT_FLAG } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { requestAgent } from './agent.ts';

export const gossipMembersCommand: Command = {
  name: 'gossip members',
  usage: '[-o json|yaml|wide]',
  summary: 'list the members of the gossip ring as seen by this host',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Members with their store and clock', 'gossip members -o wide']],
  run: async ({ flags, out }) => {
    const members = await requestAgent<AgentMember[]>(flags, 'members', {});
    members.sort((left, right) => left.name.localeCompare(right.name));
    const document = await printDocument(flags, members);
    out.stdout(document ?? tableOf(members, flags['output'] === 'wide'));
    return 0;
  },
};

function tableOf(members: readonly AgentMember[], wide: boolean): string {
  const known = (value: number | undefined, unit: string): string => (value === undefined ? '-' : `${value}${unit}`);
  return printTable(
    [
      'NAME',
      'ADDRESS',
      'STATE',
      'SINCE',
      'ROLES',
      'VERSION',
      ...(wide ? ['STORE', 'APPLIED', 'FSYNC', 'CLOCK', 'RTT'] : []),
    ],
    members.map((member) => [
      member.self ? `${member.name}*` : member.name,
      member.address,
      member.state,
      age(member.forMs),
      member.roles.join('+') || '-',
      member.version || '-',
      ...(wide
        ? [
            member.store === undefined ? '-' : `${member.store.memberId} ${member.store.state}`,
            known(member.appliedIndex, ''),
            known(member.fsyncMicros === undefined ? undefined : member.fsyncMicros / 1000, 'ms'),
            known(member.clockOffsetMs, 'ms'),
            known(member.rttMs, 'ms'),
          ]
        : []),
    ]),
  );
}

function age(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
