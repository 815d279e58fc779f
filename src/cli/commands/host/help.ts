import { nearest } from '../../../base/text/nearest-word.ts';
import { type Command, type CommandGroup, UsageError } from '../../command.ts';
import { commandLines, helpOf, listing, widthOf } from '../../help.ts';
import { TOPICS } from '../../topics.ts';

export const helpCommand: Command = {
  name: 'help',
  usage: '[COMMAND | TOPIC]',
  summary: 'show the help of a command, or a page about a topic',
  description: `Topics: ${Object.keys(TOPICS).join(', ')}.`,
  flags: {},
  arguments: [0, 2],
  values: ['command'],
  examples: [
    ['Help of a command', 'help snapshot restore'],
    ['How hosts join a cluster', 'help joining'],
  ],
  run: async ({ positionals, table, out }) => {
    const [first, second] = positionals;
    if (first === undefined) {
      out.stdout(overview(table));
      return 0;
    }
    const commands = table.flatMap((group) => group.commands);
    const command = commands.find(({ name }) => name === positionals.join(' '));
    const members = commands.filter(({ name }) => name.startsWith(`${first} `));
    if (command !== undefined) out.stdout(helpOf(command));
    else if (second === undefined && Object.hasOwn(TOPICS, first)) out.stdout(`${TOPICS[first]?.text ?? ''}`);
    else if (second === undefined && members.length > 0) out.stdout(listing(members));
    else {
      const known = [...commands.map(({ name }) => name), ...commands.map(({ name }) => name.split(' ')[0] ?? '')];
      const meant = nearest(positionals.join(' '), [...known, ...Object.keys(TOPICS)]);
      throw new UsageError(
        `help: no command or topic "${positionals.join(' ')}"${meant === undefined ? ': see hyperedge help' : `; did you mean ${meant}?`}`,
      );
    }
    return 0;
  },
};

function overview(groups: readonly CommandGroup[]): string {
  const shown = groups.map(({ title, commands }) => ({ title, commands: commands.filter((each) => !each.hidden) }));
  const width = widthOf(shown.flatMap(({ commands }) => commands.map(({ name }) => name)));
  const sections = shown.map(({ title, commands }) => `${title}:\n${commandLines(commands, width)}`);
  return `hyperedge: a Kubernetes control plane and node in one executable

Usage: hyperedge COMMAND [FLAGS]

${sections.join('\n')}
hyperedge COMMAND --help shows a command's flags.
hyperedge help TOPIC shows a page about ${Object.keys(TOPICS).join(', ')}.
hyperedge kubectl --help lists the verbs of the built-in client, such as get, apply and logs.
`;
}
