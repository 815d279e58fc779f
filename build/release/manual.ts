/** Man page and bash completion from the table of commands. */
import type { Command, Flag } from '../../src/cli/command.ts';
import { COMMON_FLAGS } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/table.ts';
import { usageOf } from '../../src/cli/help.ts';

/** Commands that are documented, sorted by name. */
export const describedCommands = (): Command[] =>
  COMMANDS.filter(({ hidden }) => !hidden).sort((left, right) => (left.name < right.name ? -1 : 1));

/** Roff of `hyperedge(1)`. `date`: YYYY-MM-DD. Source: man(7). */
export function manPage(commands: readonly Command[], version: string, date: string): string {
  const lines = [
    `.TH HYPEREDGE 1 "${date}" "hyperedge ${version}" "User Commands"`,
    '.SH NAME',
    'hyperedge \\- Kubernetes control plane and node in one executable',
    '.SH SYNOPSIS',
    '.B hyperedge',
    '.I COMMAND',
    '.RI [ FLAGS ]',
    '.SH DESCRIPTION',
    roff('hyperedge runs the control plane of OKD and a node on bare-metal hosts.'),
    roff('The package starts nothing. Run "hyperedge install" to configure and start the service.'),
    '.SH COMMANDS',
  ];
  for (const command of commands) {
    lines.push(`.SS ${roff(command.name)}`, '.B', roff(usageOf(command)), '.PP', roff(command.summary));
    if (command.description !== undefined) lines.push('.PP', ...command.description.split('\n').map(roff));
    for (const [flag, described] of Object.entries(command.flags)) lines.push('.TP', flagLine(flag, described));
  }
  lines.push('.SH FILES');
  for (const [file, text] of FILES) lines.push('.TP', `.I ${roff(file)}`, roff(text));
  lines.push('.SH EXIT STATUS', roff('0 on success, 1 on failure, 2 for wrong use.'));
  return `${lines.join('\n')}\n`;
}

const FILES = [
  ['/etc/origin/bootstrap.yaml', 'Settings of this host.'],
  ['/etc/origin/bootstrap.yaml.d/*.yaml', 'Drop-ins, merged in the order of their names.'],
  ['/var/lib/origin', 'Data of the node and of the store.'],
] as const;

function flagLine(name: string, flag: Flag): string {
  const short = flag.short === undefined ? '' : `\\-${flag.short}, `;
  const value = flag.type === 'string' ? ` \\fI${roff(flag.value ?? 'VALUE')}\\fR` : '';
  return `\\fB${short}\\-\\-${roff(name)}\\fR${value}\n${roff(flag.help)}`;
}

/** Escapes backslashes and hyphens, and a control character at the beginning of the line. Typography becomes ASCII. */
function roff(text: string): string {
  const ascii = text.replaceAll('’', "'").replaceAll('…', '...').replaceAll('–', '-');
  const escaped = ascii.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

/** Completes command names, then the flags of the command, then files. */
export function bashCompletion(commands: readonly Command[]): string {
  const firsts = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  const seconds = (first: string): string[] =>
    commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
  const groups = firsts.filter((first) => seconds(first).length > 0);
  const words = groups.map((first) => `    '${first}') words='${seconds(first).join(' ')}' ;;`);
  const flags = commands.map(({ name, flags: own }) => {
    const names = Object.keys({ ...own, ...COMMON_FLAGS }).map((flag) => `--${flag}`);
    return `    '${name}') flags='${names.sort().join(' ')}' ;;`;
  });
  return `# bash completion of hyperedge, generated from its commands
_hyperedge() {
  local current=\${COMP_WORDS[COMP_CWORD]} first=\${COMP_WORDS[1]} pair="\${COMP_WORDS[1]} \${COMP_WORDS[2]}" words flags
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${firsts.join(' ')}' -- "$current"))
    return
  fi
  case "$first" in
${words.join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ] && [ "\${current#-}" = "$current" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case "$first" in
${flags.filter((line) => !/^ {4}'[^']* [^']*'\)/.test(line)).join('\n')}
  esac
  case "$pair" in
${flags.filter((line) => /^ {4}'[^']* [^']*'\)/.test(line)).join('\n')}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _hyperedge hyperedge
`;
}
