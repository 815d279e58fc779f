/** Completes the commands of the table. */
import {
  type Candidate,
  type CompletedFlag,
  type Completion,
  cursorPlace,
  flagCandidates,
  matching,
} from '../../base/command-line/completion.ts';
import { COMMON_FLAGS, type Command, type Flag, type ValueKind, type ValueSource } from '../command.ts';
import { TOPICS } from '../topics.ts';

/** Flags and arguments before the cursor, which narrow the candidates. */
export interface LookupContext {
  readonly positionals: readonly string[];
  /** Returns the value of a flag such as `root`, `kubeconfig` or `namespace`. */
  value(flag: string): string | undefined;
}

/** Looks up objects of a kind. Rejects when they cannot be read. */
export type Lookup = (
  kind: Exclude<ValueKind, 'command' | 'directory' | 'file'>,
  context: LookupContext,
) => Promise<readonly string[]>;

/** The command at the start of the words; undefined if the words are only a part of a name or unknown. */
export function commandOf(commands: readonly Command[], words: readonly string[]): Command | undefined {
  const [first = '', second = ''] = words;
  return commands.find(({ name }) => name === `${first} ${second}`) ?? commands.find(({ name }) => name === first);
}

/** Candidates for the first word: the commands, and the verbs of the built-in client in `more`. */
export function firstWords(commands: readonly Command[], more: readonly Candidate[], current: string): Candidate[] {
  const own = commands
    .filter(({ hidden }) => !hidden)
    .map(({ name, summary }): Candidate => {
      const [first = ''] = name.split(' ');
      const members = commands.filter((each) => each.name.startsWith(`${first} `));
      if (members.length === 0) return { value: first, help: summary };
      return { value: first, help: members.map((each) => each.name.slice(first.length + 1)).join(', ') };
    });
  const unique = new Map([...more, ...own].map((each) => [each.value, each]));
  return matching([...unique.values()], current).sort((left, right) => (left.value < right.value ? -1 : 1));
}

/** Candidates for the second word of a group such as `image`. */
export const secondWords = (commands: readonly Command[], first: string, current: string): Candidate[] =>
  matching(
    commands
      .filter(({ name, hidden }) => !hidden && name.startsWith(`${first} `))
      .map(({ name, summary }) => ({ value: name.slice(first.length + 1), help: summary })),
    current,
  );

/** Candidates after the name of a command: flags, values of flags, and arguments. */
export async function completeCommand(
  commands: readonly Command[],
  command: Command,
  words: readonly string[],
  current: string,
  lookup: Lookup,
): Promise<Completion> {
  const specs = { ...command.flags, ...COMMON_FLAGS };
  const flags = completedFlags(specs);
  const place = cursorPlace(flags, words, current);
  if (place.kind === 'flag') return { candidates: flagCandidates(flags, current) };
  const { positionals } = place;
  const [source, lead] =
    place.kind === 'value'
      ? [sourceOf(specs[place.flag]), place.lead]
      : [command.values?.[positionals.length] ?? lastRepeated(command, positionals.length), ''];
  if (source === undefined) return { candidates: [] };
  if (typeof source !== 'string') return { candidates: matching(source, current, lead) };
  if (source === 'file' || source === 'directory') return { candidates: [], paths: source };
  if (source === 'command') return { candidates: helpWords(commands, positionals, current) };
  const context = { positionals, value: (flag: string) => flagValue(words, flag, specs[flag]?.short) };
  // If the values cannot be read, only paths are offered.
  const found = await lookup(source, context).catch((): readonly string[] => []);
  const candidates = matching(
    found.filter((each) => !positionals.includes(each)),
    current,
    lead,
  );
  return { candidates, ...(source === 'snapshot' ? { paths: 'file' as const } : {}) };
}

function helpWords(commands: readonly Command[], positionals: readonly string[], current: string): Candidate[] {
  const [first] = positionals;
  if (first !== undefined) return positionals.length === 1 ? secondWords(commands, first, current) : [];
  const topics = Object.entries(TOPICS).map(([value, { title }]) => ({ value, help: title }));
  return firstWords(commands, topics, current);
}

const completedFlags = (flags: Readonly<Record<string, Flag>>): Record<string, CompletedFlag> =>
  Object.fromEntries(
    Object.entries(flags).map(([name, { type, short, help }]) => [
      name,
      { takesValue: type === 'string', help, ...(short === undefined ? {} : { short }) },
    ]),
  );

function sourceOf(flag: Flag | undefined): ValueSource | undefined {
  if (flag?.values !== undefined) return flag.values;
  if (flag?.value === 'DIR' || flag?.value === 'DIRECTORY') return 'directory';
  return flag?.value === 'FILE' || flag?.value === 'BUNDLE' ? 'file' : undefined;
}

/** Values of a repeated argument: the last entry applies to all further arguments of the command. */
function lastRepeated({ values, arguments: limits }: Command, index: number): ValueSource | undefined {
  return limits !== 'own' && index < limits[1] ? values?.at(-1) : undefined;
}

function flagValue(words: readonly string[], name: string, short: string | undefined): string | undefined {
  for (const [index, word] of words.entries()) {
    if (word.startsWith(`--${name}=`)) return word.slice(name.length + 3);
    if (word === `--${name}` || (short !== undefined && word === `-${short}`)) return words[index + 1];
  }
  return undefined;
}
