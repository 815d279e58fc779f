/** Help texts from the table of verbs. */
import type { FlagSpecs } from './core/flags.ts';
import type { Verb } from './port.ts';

const GROUPS: Readonly<Record<Verb['group'], string>> = {
  basic: 'Basic commands',
  deploy: 'Deploy commands',
  cluster: 'Cluster management commands',
  debug: 'Troubleshooting and debugging commands',
  advanced: 'Advanced commands',
  settings: 'Settings commands',
  other: 'Other commands',
};

export function verbList(verbs: readonly Verb[], program: string): string {
  const width = Math.max(...verbs.map(({ name }) => name.length)) + 2;
  const groups = Object.entries(GROUPS).flatMap(([group, title]) => {
    const members = verbs.filter((verb) => verb.group === group);
    if (members.length === 0) return [];
    return [`${title}:\n${members.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}\n`).join('')}`];
  });
  return `Usage: ${program} VERB [flags]\n\n${groups.join('\n')}\n${program} VERB --help shows the flags of a verb.\n`;
}

export function verbHelp(verb: Verb, words: readonly string[], program: string): string {
  const name = `${program} ${words.join(' ')}`;
  const parts = [`Usage: ${name}${verb.verbs === undefined ? '' : ' VERB'} ${verb.usage} [flags]\n\n${verb.summary}\n`];
  if (verb.verbs !== undefined) {
    const width = Math.max(...verb.verbs.map((each) => each.name.length)) + 2;
    parts.push(`Verbs:\n${verb.verbs.map((each) => `  ${each.name.padEnd(width)}${each.summary}\n`).join('')}`);
  }
  if (verb.examples !== undefined)
    parts.push(
      `Examples:\n${verb.examples.map(([text, command]) => `  # ${text}\n  ${program} ${command}\n`).join('\n')}`,
    );
  if (Object.keys(verb.flags).length > 0) parts.push(`Flags:\n${flagLines(verb.flags)}`);
  parts.push(
    `Flags of all verbs (-n, --context, --kubeconfig, …) are in ${program === 'hyperedge' ? 'hyperedge kubectl' : program} options.\n`,
  );
  return parts.join('\n');
}

export function flagLines(specs: FlagSpecs): string {
  const lines = Object.entries(specs).map(([name, { short, type, value, help, default: initial }]) => ({
    left: `${short === undefined ? '    ' : `-${short}, `}--${name}${type === 'bool' || type === 'count' ? '' : ` ${value ?? 'VALUE'}`}`,
    help: initial === undefined || initial === 'none' ? help : `${help} (default ${initial})`,
  }));
  const width = Math.max(...lines.map(({ left }) => left.length)) + 2;
  return lines.map(({ left, help }) => `  ${left.padEnd(width)}${help}\n`).join('');
}
