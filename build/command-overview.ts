/** `node build/command-overview.ts` writes the overview of commands into docs/command-line.md from the table. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND_GROUPS } from '../src/cli/commands/table.ts';

const PAGE = join(import.meta.dirname, '../docs/command-line.md');
const [BEGIN, END] = ['<!-- commands: node build/command-overview.ts -->', '<!-- end of commands -->'];

function sections(): string {
  const tables = COMMAND_GROUPS.map(({ title, commands }) => {
    const rows = commands.filter(({ hidden }) => !hidden).map(({ name, summary }) => `| \`${name}\` | ${summary} |\n`);
    return `### ${title}\n\n| command | effect |\n|---|---|\n${rows.join('')}`;
  });
  return `${BEGIN}\n\n${tables.join('\n')}\n${END}`;
}

/** Returns the page with its overview replaced by the current one. */
export function withOverview(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/command-line.md: the lines ${BEGIN} and ${END} are missing`);
  return `${page.slice(0, begin)}${sections()}${page.slice(end + END.length)}`;
}

if (import.meta.main) writeFileSync(PAGE, withOverview(readFileSync(PAGE, 'utf8')));
