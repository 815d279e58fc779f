/** Man pages from the table of commands, from the topics of help and from the verbs of the built-in client. */
import { COMMON_FLAGS, type Command, type Flag } from '../../src/cli/command.ts';
import { COMMAND_GROUPS } from '../../src/cli/commands/table.ts';
import { usageOf } from '../../src/cli/help.ts';
import { TOPICS } from '../../src/cli/topics.ts';
import type { Verb } from '../../src/kubectl/port.ts';
import { GLOBAL_FLAGS } from '../../src/kubectl/run.ts';
import { VERBS } from '../../src/kubectl/verbs.ts';

interface ManPage {
  /** File name, such as `hyperedge-image-pin.1`. */
  readonly file: string;
  readonly text: string;
}

/** Man pages of section 1 for all commands. `date` has the form YYYY-MM-DD. Source: man(7). */
export function manPages(version: string, date: string): ManPage[] {
  const head = (name: string): string => `.TH ${name.toUpperCase()} 1 "${date}" "hyperedge ${version}" "User Commands"`;
  const page = (name: string, lines: readonly string[]): ManPage => ({
    file: `${name}.1`,
    text: `${[head(name), ...lines].join('\n')}\n`,
  });
  const shown = COMMAND_GROUPS.flatMap(({ commands }) => commands).filter(({ hidden }) => !hidden);
  return [
    page('hyperedge', overviewLines()),
    page('hyperedge-kubectl', clientLines()),
    ...shown.map((command) => page(pageOf(command), commandLines(command))),
  ];
}

const pageOf = ({ name }: Command): string => `hyperedge-${name.replace(' ', '-')}`;

const heading = (name: string, summary: string, synopsis: readonly string[]): string[] => [
  '.SH NAME',
  `${roff(name)} \\- ${roff(summary)}`,
  '.SH SYNOPSIS',
  ...synopsis,
  '.SH DESCRIPTION',
];

function overviewLines(): string[] {
  const lines = heading('hyperedge', 'Kubernetes control plane and node in one executable', [
    '.B hyperedge',
    '.I COMMAND',
    '.RI [ FLAGS ]',
  ]);
  lines.push(
    roff('hyperedge runs the control plane of OKD and a node on bare-metal hosts.'),
    roff('The package starts nothing. Run "hyperedge install" to configure and start the service.'),
    roff('Each command has a page of its own, such as hyperedge-install(1).'),
    '.SH COMMANDS',
  );
  for (const { title, commands } of COMMAND_GROUPS) {
    lines.push(`.SS ${roff(title)}`);
    for (const { name, summary, hidden } of commands) if (!hidden) lines.push('.TP', `.B ${roff(name)}`, roff(summary));
  }
  lines.push(
    '.SS Built\\-in client',
    roff('Verbs such as get, apply and logs: see hyperedge-kubectl(1).'),
    '.SH TOPICS',
  );
  for (const { title, text } of Object.values(TOPICS)) {
    const [, ...body] = text.trimEnd().split('\n');
    lines.push(`.SS ${roff(title)}`, ...verbatim(body.slice(1)));
  }
  lines.push('.SH SEE ALSO', '.BR hyperedge\\-install (1),', '.BR hyperedge\\-kubectl (1)');
  return lines;
}

function commandLines(command: Command): string[] {
  const lines = heading(pageOf(command), command.summary, [`.B ${roff(usageOf(command))}`]);
  lines.push(roff(`${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`));
  if (command.description !== undefined) lines.push('.PP', ...command.description.split('\n').map(roff));
  if (command.arguments !== 'own') {
    lines.push('.SH OPTIONS');
    for (const [name, flag] of Object.entries({ ...command.flags, ...COMMON_FLAGS }))
      lines.push(...flagLines(name, flag));
  }
  lines.push(...exampleLines(command.examples));
  return [...lines, '.SH SEE ALSO', '.BR hyperedge (1)'];
}

function clientLines(): string[] {
  const lines = heading('hyperedge-kubectl', 'built-in client of Kubernetes', [
    '.B hyperedge',
    '.RI [ kubectl ]',
    '.I VERB',
    '.RI [ FLAGS ]',
  ]);
  lines.push(
    roff('The word kubectl may be left out, except for config and version. Verbs and flags are those of kubectl.'),
  );
  lines.push('.SH VERBS');
  for (const verb of VERBS) lines.push(...verbLines(verb, verb.name));
  lines.push('.SH FLAGS OF ALL VERBS');
  for (const [name, flag] of Object.entries(GLOBAL_FLAGS)) lines.push(...flagLines(name, flag));
  return [...lines, '.SH SEE ALSO', '.BR hyperedge (1)'];
}

function verbLines(verb: Verb, name: string): string[] {
  if (verb.verbs !== undefined && verb.load === undefined)
    return verb.verbs.flatMap((each) => verbLines(each, `${name} ${each.name}`));
  const lines = [`.SS ${roff(`${name} ${verb.usage}`.trimEnd())}`, roff(verb.summary)];
  for (const [flag, spec] of Object.entries(verb.flags)) lines.push(...flagLines(flag, spec));
  for (const [text, call] of verb.examples ?? []) lines.push('.PP', roff(`${text}:`), ...code(call));
  return lines;
}

interface DescribedFlag extends Pick<Flag, 'short' | 'value' | 'help'> {
  readonly type: string;
}

function flagLines(name: string, { short, type, value, help }: DescribedFlag): string[] {
  const letter = short === undefined ? '' : `\\-${short}, `;
  const takesValue = !['boolean', 'bool', 'count'].includes(type);
  const shown = takesValue ? ` \\fI${roff(value ?? 'VALUE')}\\fR` : '';
  return ['.TP', `\\fB${letter}\\-\\-${roff(name)}\\fR${shown}`, roff(help)];
}

function exampleLines(examples: Command['examples']): string[] {
  const blocks = examples.map(([text, call]) => [roff(`${text}:`), ...code(call)]);
  return ['.SH EXAMPLES', ...blocks.flatMap((lines, index) => (index === 0 ? lines : ['.PP', ...lines]))];
}

const code = (call: string): string[] => ['.RS 4', `.B ${roff(`hyperedge ${call}`)}`, '.RE'];

/** Formats lines that man(1) must not fill. */
const verbatim = (lines: readonly string[]): string[] => ['.nf', ...lines.map((line) => roff(line) || '.sp'), '.fi'];

/** Escapes text for roff: backslashes, hyphens, and a control character at the beginning of a line. Output is ASCII. */
function roff(text: string): string {
  const ascii = text.replaceAll('’', "'").replaceAll('…', '...').replaceAll('–', '-');
  const escaped = ascii.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
