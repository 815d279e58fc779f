import type { Command } from '../../command.ts';
import { printDocument } from '../../printers.ts';
import { FLAGS, findMember, titleOf, withStore } from './store-access.ts';

export const membersPromoteCommand: Command = {
  name: 'members promote',
  usage: 'NAME|ID',
  summary: 'promote a learner to a voting member',
  flags: FLAGS,
  arguments: [1, 1],
  examples: [['Promote a learner', 'members promote n4']],
  run: ({ flags, positionals, out }) =>
    withStore(flags, async (admin) => {
      const member = await findMember(admin, positionals[0] ?? '');
      await admin.promoteMember(member.id);
      out.stdout((await printDocument(flags, { ...member, learner: false })) ?? `member ${titleOf(member)} promoted\n`);
      return 0;
    }),
};
