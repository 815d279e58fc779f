import type { KeyReport } from '../../../host/network/ring.ts';
import { type Command, ROOT_FLAG, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { requestAgent } from './agent.ts';

export const gossipKeysCommand: Command = {
  name: 'gossip keys',
  usage: 'list|install|use|remove [KEY] [-o json|yaml]',
  summary: 'list or rotate the encryption keys of the gossip ring',
  description: 'KEY is in base64. To rotate: install the new key, use it, remove the old one.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [1, 2],
  values: [['list', 'install', 'use', 'remove']],
  examples: [
    ['Keys and the members that have them', 'gossip keys list'],
    ['Encrypt with an installed key', 'gossip keys use KEY'],
  ],
  run: async ({ flags, positionals, out }) => {
    const [action = '', key] = positionals;
    if (!['list', 'install', 'use', 'remove'].includes(action))
      throw new UsageError(`gossip keys ${action}: give list, install, use or remove`);
    if ((action === 'list') !== (key === undefined))
      throw new UsageError(`gossip keys ${action}: ${key === undefined ? 'give the key, in base64' : 'takes no key'}`);
    const report = await requestAgent<KeyReport>(flags, 'keys', { action, ...(key === undefined ? {} : { key }) });
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
