import type { Command } from '../../command.ts';
import { membersListCommand } from './list.ts';

export const membersCommand: Command = {
  ...membersListCommand,
  name: 'members',
  summary: 'list the store’s members with their status',
  examples: [['Members of the store', 'members']],
};
