import type { AgentMember, KeyReport } from '../../../host/network/ring.ts';
import { type Command, type FlagValues, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

async function ask<T>(flags: FlagValues, method: string, params: unknown): Promise<T> {
  const { requestAgent } = await import('../../../host/network/ring.ts');
  return requestAgent<T>(stringFlag(flags, 'root'), method, params);
}

export const membersCommand: Command = {
  usage: 'gossip members [-o json|yaml|wide]',
  summary: 'Lists the members of the gossip ring as seen by this host.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const members = await ask<AgentMember[]>(flags, 'members', {});
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

export const joinCommand: Command = {
  usage: 'gossip join ADDRESS…',
  summary: 'Joins this host to the gossip ring at these addresses, until its next start.',
  description: 'For hosts to join at every start, set gossip.join in the bootstrap file.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 64],
  run: async ({ flags, positionals, out }) => {
    const { joined } = await ask<{ joined: number }>(flags, 'join', { peers: positionals });
    out.stdout(`joined ${joined} of ${positionals.length}\n`);
    return joined === positionals.length ? 0 : 1;
  },
};

export const leaveCommand: Command = {
  usage: 'gossip leave',
  summary:
    'Removes this host from the gossip ring until gossip join or its next start; its pods and its store keep running.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    await ask(flags, 'leave', {});
    out.stdout('this host has left the ring\n');
    return 0;
  },
};

export const keysCommand: Command = {
  usage: 'gossip keys list|install|use|remove [KEY] [-o json|yaml]',
  summary: 'Lists or rotates the encryption keys on all members of the gossip ring.',
  description: 'KEY is in base64. To rotate: install the new key, use it, remove the old one.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [1, 2],
  run: async ({ flags, positionals, out }) => {
    checkFormat(flags);
    const [action = '', key] = positionals;
    if (!['list', 'install', 'use', 'remove'].includes(action))
      throw new UsageError(`gossip keys ${action}: give list, install, use or remove`);
    if ((action === 'list') !== (key === undefined))
      throw new UsageError(`gossip keys ${action}: ${key === undefined ? 'give the key, in base64' : 'takes no key'}`);
    const report = await ask<KeyReport>(flags, 'keys', { action, ...(key === undefined ? {} : { key }) });
    const document = await printDocument(flags, report);
    if (document !== undefined) out.stdout(document);
    else if (action === 'list')
      out.stdout(
        printTable(
          ['KEY', 'MEMBERS', 'ENCRYPT'],
          report.keys.map((each) => [each.key, `${each.members}/${report.members}`, String(each.primaryOn)]),
        ),
      );
    else out.stdout(`done on ${report.done} of ${report.members} members\n`);
    for (const { member, message } of report.failures) out.stderr(`hyperedge: ${member}: ${message}\n`);
    return report.failures.length === 0 ? 0 : 1;
  },
};

export const keygenCommand: Command = {
  usage: 'gossip keygen',
  summary: 'Prints a new keyring file.',
  flags: {},
  arguments: [0, 0],
  run: async ({ out }) => {
    const { newKeyringText } = await import('../../../host/network/ring.ts');
    out.stdout(newKeyringText());
    return 0;
  },
};
