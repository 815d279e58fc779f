import { printable, printableLine } from '../../../base/text/printable.ts';
import type { HostAlertReport } from '../../../host/alerts/alerts.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const alertsCommand: Command = {
  name: 'alerts',
  usage: '[--rules] [-o json|yaml]',
  summary: 'list the alerts of this host with their fixes',
  description:
    'The host process evaluates the rules, so the command works while the API server does not. Exit codes: 0 nothing\n' +
    'fires, 1 a critical alert fires or the host process does not answer, 3 only warnings fire.',
  flags: {
    rules: { type: 'boolean', help: 'print the rules as an object of the Prometheus operator' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['Alerts of this host', 'alerts'],
    ['Rules for a Prometheus', 'alerts --rules'],
  ],
  run: async ({ flags, out }) => {
    if (flags['rules'] === true) {
      const { rulesFile } = await import('../../../host/alerts/alerts.ts');
      out.stdout(rulesFile());
      return 0;
    }
    const [{ callControl }, { canonicalRoot, pathsBelow }] = await Promise.all([
      import('../../../host/control/control.ts'),
      import('../../../host/config/paths.ts'),
    ]);
    const socket = pathsBelow(await canonicalRoot(stringFlag(flags, 'root'))).controlSocket;
    const report = await callControl<HostAlertReport>(socket, 'GET', '/alerts');
    out.stdout((await printDocument(flags, documentOf(report))) ?? printAlerts(report));
    return exitCodeOf(report);
  },
};

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** The report with times as texts instead of milliseconds. */
function documentOf({ alerts, evaluatedAtMs, ...report }: HostAlertReport): object {
  return {
    ...report,
    ...(evaluatedAtMs === undefined ? {} : { evaluatedAt: timeOf(evaluatedAtMs) }),
    alerts: alerts.map(({ sinceMs, ...alert }) => ({ ...alert, since: timeOf(sinceMs) })),
  };
}

export function exitCodeOf({ alerts }: Pick<HostAlertReport, 'alerts'>): number {
  const firing = alerts.filter(({ state }) => state === 'firing').map(({ severity }) => severity);
  if (firing.includes('critical')) return 1;
  return firing.includes('warning') ? 3 : 0;
}

/** Prints a table of the alerts, the summary and fix of each alert, and the endpoints that do not respond. */
export function printAlerts({ node, alerts, targets, evaluatedAtMs }: HostAlertReport): string {
  if (evaluatedAtMs === undefined) return `node ${node}: the rules were not evaluated yet; try again in a minute\n`;
  const rows = alerts.map(({ state, severity, name, sinceMs }) => [state, severity, name, timeOf(sinceMs)]);
  const table = alerts.length === 0 ? '' : `\n${printTable(['STATE', 'SEVERITY', 'ALERT', 'SINCE'], rows)}`;
  const details = alerts
    .map(({ name, summary, fix }) => `\n${name}: ${printableLine(summary)}\n  fix: ${printable(fix)}\n`)
    .join('');
  const silent = targets
    .filter(({ up }) => !up)
    .map(({ job, error }) => `${job} does not answer: ${printableLine(error ?? '')}\n`)
    .join('');
  const firing = alerts.filter(({ state }) => state === 'firing').length;
  const head = `node ${node}: ${firing} firing, ${alerts.length - firing} pending, evaluated ${timeOf(evaluatedAtMs)}\n`;
  return `${head}${table}${details}${silent === '' ? '' : `\n${silent}`}`;
}
