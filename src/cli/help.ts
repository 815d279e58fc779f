/** Help texts from the table of commands. */
import { COMMON_FLAGS, type Command, type Flag } from './command.ts';
import type { CommandGroup } from './commands/table.ts';

export function overview(groups: readonly CommandGroup[]): string {
  const shown = groups.map(({ title, commands }) => ({ title, commands: commands.filter((each) => !each.hidden) }));
  const width = widthOf(shown.flatMap(({ commands }) => commands.map(({ name }) => name)));
  const sections = shown.map(({ title, commands }) => `${title}:\n${lines(commands, width)}`);
  return `hyperedge: a Kubernetes control plane and node in one executable

Usage: hyperedge COMMAND [FLAGS]

${sections.join('\n')}
hyperedge COMMAND --help shows a command's flags.
hyperedge kubectl --help lists the verbs of the built-in client, such as get, apply and logs.
`;
}

/** Names and summaries, for example of the commands of a group such as `image`. */
export const listing = (commands: readonly Command[]): string =>
  lines(commands, widthOf(commands.map(({ name }) => name)));

const widthOf = (names: readonly string[]): number => Math.max(...names.map((name) => name.length)) + 2;

const lines = (commands: readonly Command[], width: number): string =>
  commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}\n`).join('');

export function helpOf(command: Command): string {
  const parts = [`Usage: ${usageOf(command)}\n\n${sentenceOf(command.summary)}\n`];
  if (command.description !== undefined) parts.push(`${command.description}\n`);
  parts.push(
    `Examples:\n${command.examples.map(([text, call]) => `  # ${text}\n  hyperedge ${call}\n`).join('\n')}`,
    `Flags:\n${flagLines({ ...command.flags, ...COMMON_FLAGS })}`,
  );
  return parts.join('\n');
}

export const usageOf = ({ name, usage }: Command): string => `hyperedge ${name} ${usage}`.trimEnd();

/** The summary as a sentence. */
const sentenceOf = (summary: string): string => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;

function flagLines(flags: Readonly<Record<string, Flag>>): string {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
    return { left: `${short}--${name}${flag.type === 'string' ? ` ${flag.value ?? 'VALUE'}` : ''}`, help: flag.help };
  });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, help }) => `  ${left.padEnd(width)}${help}\n`).join('');
}
