/** `top --history`: usage of the last hours and days, read from the kubelets' history. */
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { ClientError } from '../../core/errors.ts';
import { type Point, plotLines, plotWidth, timeAxis, valueText } from '../../core/plot.ts';
import { layout } from '../../core/table.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';

export type HistoryKind = 'node' | 'pod';

interface Metric {
  readonly unit: string;
  readonly average: readonly Point[];
  readonly max: readonly Point[];
}

interface Answer {
  readonly kind: string;
  readonly node: string;
  readonly series: readonly { readonly title: string; readonly metrics: ReadonlyMap<string, Metric> }[];
  readonly document: unknown;
}

const DEFAULT_METRICS: Readonly<Record<HistoryKind, string>> = {
  node: 'cpu,memory,networkReceive,networkTransmit,diskWrite,temperature,storeLatency,apiRequests',
  pod: 'cpu,memory',
};
const HEIGHT = 4;
const PLAIN_POINTS = 60;
const JSON_POINTS = 300;
const MAX_NODES = 200;

/** `names` are the nodes or pods to show; if empty, all are shown. */
export const runHistory = (context: VerbContext, kind: HistoryKind, names: readonly string[]): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    const output = flags.text('output');
    if (output !== '' && output !== 'json') throw new ClientError('--output accepts only json with --history');
    const size = io.size();
    const width = size === undefined ? undefined : plotWidth(size.columns);
    const query = {
      since: flags.text('history'),
      metric: flags.text('metric') || DEFAULT_METRICS[kind],
      points: output === 'json' ? JSON_POINTS : (width ?? PLAIN_POINTS),
    };
    const targets = kind === 'node' ? await nodeTargets(session, names) : await podTargets(session, names);
    const answers: Answer[] = [];
    for (const { node, selection } of targets)
      answers.push(...(await read(session, node, { ...query, scope: kind, ...selection })));
    if (output === 'json') {
      const items = answers.map(({ document }) => document);
      io.out(`${JSON.stringify({ kind: 'UsageHistoryList', apiVersion: 'hyperedge.dev/v1', items }, null, 2)}\n`);
      return 0;
    }
    const text = width === undefined ? tableText(answers) : plotText(context, answers, width);
    io.out(text);
    const absent = names.filter((name) => !text.includes(name));
    const missing = kind === 'pod' && names.length > 0 ? absent.map((name) => `pod ${name}`) : [];
    const empty = text === '' ? [`${kind}s`] : [];
    for (const what of missing.length > 0 ? missing : empty)
      io.err(`no history of ${printable(what)} in the last ${printable(query.since)}\n`);
    return missing.length > 0 || empty.length > 0 ? 1 : 0;
  });

interface Target {
  readonly node: string;
  readonly selection: Readonly<Record<string, string>>;
}

async function nodeTargets(session: Session, names: readonly string[]): Promise<readonly Target[]> {
  const nodes = names.length > 0 ? names : await nodeNames(session);
  return nodes.map((node) => ({ node, selection: {} }));
}

/** Nodes to query for the history of pods. A deleted pod may have a history on any node. */
async function podTargets(session: Session, names: readonly string[]): Promise<readonly Target[]> {
  const all = session.context.flags.bool('all-namespaces');
  const namespace: Readonly<Record<string, string>> = all ? {} : { namespace: session.namespace };
  const nodes = await nodeNames(session);
  if (names.length === 0) return nodes.map((node) => ({ node, selection: namespace }));
  return names.flatMap((pod) => nodes.map((node) => ({ node, selection: { ...namespace, pod } })));
}

async function nodeNames(session: Session): Promise<readonly string[]> {
  const nodes = await session.list((await session.resources()).get('nodes'), undefined);
  return nodes.slice(0, MAX_NODES).map(({ metadata }) => metadata?.name ?? '');
}

/** Reads the history of a node. If the node does not respond, prints a message and returns nothing. */
async function read(
  session: Session,
  node: string,
  query: Readonly<Record<string, string | number>>,
): Promise<readonly Answer[]> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}/proxy/metrics/history`;
  try {
    return [answerOf(node, await session.get<Record<string, unknown>>(path, query))];
  } catch (error) {
    // All nodes reject an invalid parameter alike, so the first rejection ends the command. Its message names the
    // parameter.
    if (isApiError(error) && (error.httpCode === 400 || error.httpCode === 403)) throw error;
    const reason = isApiError(error, 'NotFound') ? 'the node does not exist, or keeps no history' : messageOf(error);
    session.context.io.err(`node ${printable(node)}: ${printable(reason)}\n`);
    return [];
  }
}

/** Parses a response. Fields of an unexpected type are ignored, because the server is not trusted. */
function answerOf(node: string, document: Record<string, unknown>): Answer {
  const series = listOf(document['series']).map((each) => {
    const { namespace, pod, container, metrics } = recordOf(each);
    const names = [namespace, pod, container].filter((name): name is string => typeof name === 'string');
    const found = Object.entries(recordOf(metrics)).map(([name, value]): [string, Metric] => {
      const { unit, average, max } = recordOf(value);
      return [name, { unit: String(unit), average: pointsOf(average), max: pointsOf(max) }];
    });
    return { title: names.length === 0 ? `node ${node}` : `pod ${names.join('/')}`, metrics: new Map(found) };
  });
  return { kind: String(document['kind']), node, series, document };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
const pointsOf = (value: unknown): readonly Point[] =>
  listOf(value).map((each) => (typeof each === 'number' ? each : undefined));
const numbersOf = (points: readonly Point[]): readonly number[] =>
  points.filter((each): each is number => typeof each === 'number');

function* shownSeries(
  answers: readonly Answer[],
): Generator<{ readonly title: string; readonly name: string; readonly metric: Metric; readonly node: string }> {
  for (const { series, node } of answers)
    for (const { title, metrics } of series)
      for (const [name, metric] of metrics)
        if (numbersOf(metric.average).length > 0) yield { title, name, metric, node };
}

/** Converts a text to a single line. */
const lineOf = (text: string): string => printable(text).replaceAll(/[\n\t]/g, ' ');

function plotText(context: VerbContext, answers: readonly Answer[], width: number): string {
  const locale = ['LC_ALL', 'LC_CTYPE', 'LANG'].map((name) => context.system.environment(name) ?? '').find(Boolean);
  const isUnicode = /utf-?8/i.test(locale ?? '');
  const lines: string[] = [];
  let shown = '';
  for (const { title, name, metric, node } of shownSeries(answers)) {
    const { unit, average, max } = metric;
    if (title !== shown)
      lines.push(...(shown === '' ? [] : ['']), lineOf(title === `node ${node}` ? title : `${title} on ${node}`));
    shown = title;
    const format = (value: number): string => valueText(value, unit);
    const numbers = numbersOf(average);
    const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
    const peak = Math.max(...numbersOf(max), ...numbers);
    lines.push(`  ${lineOf(name)}: average ${format(mean)}, highest ${format(peak)}`);
    lines.push(...plotLines(average, { width, height: HEIGHT, isUnicode, format }));
    lines.push(timeAxis(`${printable(context.flags.text('history'))} ago`, 'now', Math.min(width, average.length)));
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** One line for each metric, for use by programs. */
function tableText(answers: readonly Answer[]): string {
  const rows = [...shownSeries(answers)].map(({ title, name, metric, node }) => {
    const numbers = numbersOf(metric.average);
    const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
    const shown = [mean, Math.max(...numbersOf(metric.max), ...numbers), numbers.at(-1) ?? 0];
    const cells = [title.replace(' ', '/'), node, name, ...shown.map((value) => valueText(value, metric.unit))];
    return cells.map(lineOf);
  });
  if (rows.length === 0) return '';
  return layout([['OBJECT', 'NODE', 'METRIC', 'AVERAGE', 'HIGHEST', 'LATEST'], ...rows]);
}

/** `top --history TIME [node|pod [NAME…]]`, where the flags precede the kind. */
export function runTop(context: VerbContext): Promise<number> {
  const { flags, args } = context;
  if (!flags.has('history')) throw new ClientError('give --history, or one of the verbs node and pod');
  const [kind = 'nodes', ...names] = args;
  if (/^nodes?$/.test(kind)) return runHistory(context, 'node', names);
  if (/^pods?$/.test(kind)) return runHistory(context, 'pod', names);
  throw new ClientError(`"${kind}": --history accepts nodes and pods`);
}
