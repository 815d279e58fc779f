import { countText } from '../../../base/text/count-text.ts';
import { printable, printableLine } from '../../../base/text/printable.ts';
import type { CheckReport, DoctorReport, Result } from '../../../doctor/port.ts';
import { usesColours } from '../../colours.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  usage: '[--preflight] [--check ID]… [-o json|yaml|wide]',
  summary: 'check this host and its cluster, and print a fix for each problem',
  description:
    'Works without a running host process. Exit codes: 0 no problem, 1 errors, 3 warnings only. A check that could not\n' +
    'be made within its time limit is "unknown" and counts as a warning.',
  flags: {
    preflight: { type: 'boolean', help: 'only the checks before an installation' },
    check: { type: 'string', value: 'ID', values: 'check', multiple: true, help: 'only this check; may be repeated' },
    list: { type: 'boolean', help: 'list the checks and run none' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['All checks', 'doctor'],
    ['Checks before an installation', 'doctor --preflight'],
    ['Names of the checks', 'doctor --list'],
  ],
  run: async ({ flags, out }) => {
    const { chosenChecks, exitCodeOf, runDoctor } = await import('../../../host/doctor/doctor.ts');
    const only = Array.isArray(flags['check']) ? flags['check'].map(String) : [];
    const chosen = { only, preflight: flags['preflight'] === true };
    if (flags['list'] === true) {
      const checks = chosenChecks(chosen).map(({ id, group, preflight, title }) => ({ id, group, preflight, title }));
      const rows = checks.map(({ id, group, preflight, title }) => [id, group, preflight ? 'yes' : '', title]);
      out.stdout((await printDocument(flags, checks)) ?? printTable(['CHECK', 'GROUP', 'PREFLIGHT', 'TITLE'], rows));
      return 0;
    }
    const report = await runDoctor({ ...chosen, root: stringFlag(flags, 'root') });
    const colours = usesColours(process.stdout, process.env);
    out.stdout((await printDocument(flags, report)) ?? printReport(report, flags['output'] === 'wide', colours));
    return exitCodeOf(report);
  },
};

const COLOURS: Readonly<Record<Result, string>> = { ok: '32', skipped: '2', unknown: '33', warning: '33', error: '31' };

const STATE_WIDTH = 9;

/** Prints a line per check, in groups. Each finding that is not ok has a separate line with its fix. */
export function printReport({ checks, counts }: DoctorReport, wide: boolean, colours: boolean): string {
  const width = Math.max(0, ...checks.map(({ id }) => id.length)) + 2;
  const paint = (result: Result, text: string): string =>
    colours ? `\u001B[${COLOURS[result]}m${text}\u001B[0m` : text;
  const groups = Map.groupBy(checks, ({ group }) => group);
  const sections = [...groups].map(
    ([group, members]) =>
      `${group.toUpperCase()}\n${members.map((each) => linesOf(each, width, wide, paint)).join('')}`,
  );
  const summary = `${countText(counts.error, 'error')}, ${countText(counts.warning, 'warning')}, ${counts.unknown} unknown, ${counts.ok} ok, ${counts.skipped} skipped\n`;
  return `${sections.join('\n')}\n${summary}`;
}

function linesOf(
  { id, result, findings }: CheckReport,
  width: number,
  wide: boolean,
  paint: (result: Result, text: string) => string,
): string {
  const shown = wide ? findings : findings.filter((each) => each.result === result);
  return shown
    .map(({ result: state, evidence, fix }, at) => {
      const head = `  ${paint(state, state.padEnd(STATE_WIDTH))}${(at === 0 ? id : '').padEnd(width)}`;
      const indent = ' '.repeat(2 + STATE_WIDTH + width);
      return `${head}${printableLine(evidence)}\n${fix === undefined ? '' : `${indent}fix: ${printable(fix)}\n`}`;
    })
    .join('');
}
