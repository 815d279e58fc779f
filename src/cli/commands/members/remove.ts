import type { Command } from '../../command.ts';
import { printDocument } from '../../printers.ts';
import { FLAGS, findMember, titleOf, withStore } from './store-access.ts';

export const membersRemoveCommand: Command = {
  name: 'members remove',
  usage: 'NAME|ID',
  summary: 'remove a member from the store’s cluster; its process exits',
  flags: FLAGS,
  arguments: [1, 1],
  examples: [['Remove a lost member', 'members remove n3']],
  run: ({ flags, positionals, out }) =>
    withStore(flags, async (admin) => {
      const member = await findMember(admin, positionals[0] ?? '');
      await admin.removeMember(member.id);
      out.stdout((await printDocument(flags, member)) ?? `member ${titleOf(member)} removed\n`);
      return 0;
    }),
};
