/** Help texts from the table of commands. */
import { COMMON_FLAGS, type Command, type Flag } from './command.ts';

/** Lines with names and summaries, for example of the commands of a group such as `image`. */
export const listing = (commands: readonly Command[]): string =>
  commandLines(commands, widthOf(commands.map(({ name }) => name)));

export const widthOf = (names: readonly string[]): number => Math.max(...names.map((name) => name.length)) + 2;

/** Lines of a list, with names padded to `width`. */
export const commandLines = (commands: readonly Command[], width: number): string =>
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

/** The summary as a sentence with a capital letter and a full stop. */
const sentenceOf = (summary: string): string => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;

function flagLines(flags: Readonly<Record<string, Flag>>): string {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
    return { left: `${short}--${name}${flag.type === 'string' ? ` ${flag.value ?? 'VALUE'}` : ''}`, help: flag.help };
  });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, help }) => `  ${left.padEnd(width)}${help}\n`).join('');
}
