/** Formats the report as text: first the host, then the cluster, the alarms and the next commands. */

import { humanDuration } from '../../api/printing/duration.ts';
import { bytesText } from '../../base/text/bytes-text.ts';
import { dateText, timeMs } from '../../base/time/timestamps.ts';
import type { About, ClusterStatus, HostProcess, MemberStatus, NodeStatus, Pool, State } from '../port.ts';

export interface TextOptions {
  readonly wide: boolean;
  /** Whether states are coloured with ANSI escape sequences. */
  readonly colours: boolean;
}

/** Known facts about this host, or the reason why they are unknown. */
export type HostView = { readonly process: HostProcess } | { readonly reason: string };

interface Cell {
  readonly text: string;
  readonly state: State;
}

const COLOURS: Readonly<Record<State, string | undefined>> = {
  good: '32',
  warn: '33',
  bad: '31',
  neutral: undefined,
};
const MAX_TEXT = 400;
const GAP = 3;
const LABEL_WIDTH = 15;

const HEALTH: Readonly<Record<NodeStatus['health'], State>> = {
  Ready: 'good',
  alive: 'good',
  NotReady: 'bad',
  dead: 'bad',
  suspect: 'warn',
  unknown: 'warn',
  left: 'neutral',
};

export function textOf(report: ClusterStatus, host: HostView, about: About, options: TextOptions): string {
  const paint = painter(options.colours);
  const { nodes, members, alarms, unknown, next } = report;
  const sections = [
    hostLines(host, about, paint),
    'process' in host ? table(COMPONENT_HEADER, host.process.components.map(componentRow(options.wide)), paint) : '',
    nodes.length === 0 ? '' : table(NODE_HEADER, nodes.map(nodeRow), paint),
    members === undefined ? '' : table(MEMBER_HEADER, members.map(memberRow), paint),
    factLines(report),
    alarms
      .map(
        ({ severity, subject, message }) =>
          `${paint(severity === 'error' ? 'bad' : 'warn', severity.padEnd(8))}${plain(subject)}: ${plain(message)}\n`,
      )
      .join(''),
    unknown.map(({ what, why }) => `${paint('warn', 'unknown'.padEnd(8))}${what}: ${plain(why)}\n`).join(''),
    next.length === 0 ? '' : `Next:\n${next.map((each) => `  ${plain(each)}\n`).join('')}`,
  ];
  return sections.filter((section) => section !== '').join('\n');
}

type Paint = (state: State, text: string) => string;

const painter =
  (colours: boolean): Paint =>
  (state, text) => {
    const code = COLOURS[state];
    return colours && code !== undefined ? `\u001B[${code}m${text}\u001B[0m` : text;
  };

function hostLines(host: HostView, { nodeName, nodeIp, installed, root, version }: About, paint: Paint): string {
  if (!installed) return `nothing is installed below ${plain(root)}\n`;
  if ('reason' in host) {
    const name = nodeName === '' ? 'node of this host' : `node ${nodeName} (${nodeIp})`;
    return `${name}: ${paint('bad', 'unknown')}: ${plain(host.reason)}\nhyperedge ${version}\n`;
  }
  const {
    node,
    nodeIp: ip,
    ready,
    notReady,
    cgroupDriver,
    kubernetes,
    kubeconfig,
    layout,
    pid,
    startedAt,
  } = host.process;
  const state = ready ? paint('good', 'Ready') : `${paint('bad', 'NotReady')}: ${plain(notReady ?? '')}`;
  return (
    `node ${node} (${ip}): ${state}\n` +
    `hyperedge ${host.process.version}, pid ${pid}, since ${startedAt}, cgroup driver ${cgroupDriver}\n` +
    `kubernetes ${kubernetes.kubelet}, API server ${kubernetes.apiServer ?? 'does not answer'}\n` +
    `kubeconfig ${kubeconfig}\n${layout === undefined ? '' : `${layout}\n`}`
  );
}

const COMPONENT_HEADER = ['COMPONENT', 'STATE', 'RESTARTS', 'STARTED'];
const NODE_HEADER = ['NODE', 'HEALTH', 'ROLES', 'VERSION', 'RELEASE', 'LAST CONTACT', 'FROM'];
const MEMBER_HEADER = ['STORE MEMBER', 'ROLE', 'STATE', 'LAG', 'FSYNC', 'SIZE'];

const componentRow =
  (wide: boolean) =>
  ({ name, state, restarts, startedAt, pid }: HostProcess['components'][number]): Cell[] => [
    cell(name),
    cell(state, state === 'running' ? 'good' : 'bad'),
    cell(String(restarts)),
    cell(startedAt),
    ...(wide ? [cell(String(pid))] : []),
  ];

function nodeRow({
  name,
  health,
  roles,
  kubeletVersion,
  release,
  lastContactMs,
  from,
  schedulable,
}: NodeStatus): Cell[] {
  const shown = schedulable === false ? `${health},SchedulingDisabled` : health;
  return [
    cell(name),
    cell(shown, HEALTH[health]),
    cell(roles.join(',')),
    cell(kubeletVersion),
    cell(release),
    cell(lastContactMs === undefined ? undefined : `${humanDuration(lastContactMs)} ago`),
    cell(from),
  ];
}

function memberRow({ name, role, state, lag, fsyncMs, dbBytes }: MemberStatus): Cell[] {
  return [
    cell(name),
    cell(role),
    cell(state, state === 'ok' ? 'good' : 'bad'),
    cell(lag === undefined ? undefined : String(lag)),
    cell(fsyncMs === undefined ? undefined : `${fsyncMs < 10 ? fsyncMs.toFixed(1) : Math.round(fsyncMs)}ms`),
    cell(dbBytes === undefined ? undefined : bytesText(dbBytes)),
  ];
}

function factLines({ certificates, snapshots, update, pools, quorum }: ClusterStatus): string {
  const lines: [label: string, text: string][] = [];
  if (quorum !== undefined) lines.push(['quorum', quorum ? 'yes' : 'no']);
  if (certificates !== undefined) {
    const { file, inMs, expires } = certificates.next;
    const when = inMs > 0 ? `expires in ${humanDuration(inMs)}` : `expired ${humanDuration(-inMs)} ago`;
    lines.push(['certificates', `next ${when} (${dateText(timeMs(expires))}): ${file}`]);
  }
  if (snapshots !== undefined) {
    const { newest, every, directory } = snapshots;
    const schedule = every === undefined ? 'no schedule' : `one every ${every}`;
    const last =
      newest === undefined
        ? `none in ${directory}`
        : `${humanDuration(newest.ageMs)} ago, revision ${newest.revision}, ${bytesText(newest.bytes)}`;
    lines.push(['last snapshot', `${last}; ${schedule}`]);
  }
  if (update !== undefined) {
    const { current, desired, available } = update;
    const target = desired === undefined ? '' : `, updating to ${desired}`;
    lines.push([
      'release',
      `${current}${target}${available.length === 0 ? '' : `; available: ${available.join(', ')}`}`,
    ]);
  }
  if (pools !== undefined && pools.length > 0) lines.push(['pools', pools.map(poolText).join('; ')]);
  return lines.map(([label, text]) => `${label.padEnd(LABEL_WIDTH)}${plain(text)}\n`).join('');
}

function poolText({ name, machines, updated, unavailable, paused, degraded }: Pool): string {
  const notes = [
    ...(unavailable > 0 ? [`${unavailable} unavailable`] : []),
    ...(paused ? ['paused'] : []),
    ...(degraded === undefined ? [] : ['degraded']),
  ];
  return `${name} ${updated} of ${machines} updated${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
}

const cell = (text: string | undefined, state: State = 'neutral'): Cell => ({
  text: text === undefined || text === '' ? '-' : plain(text),
  state,
});

/**
 * Formats a table with three spaces between columns, as kubectl does. The last column is not padded. Colour sequences
 * do not count as width.
 */
function table(header: readonly string[], rows: readonly (readonly Cell[])[], paint: Paint): string {
  const count = Math.max(header.length, ...rows.map((row) => row.length));
  const titles = Array.from({ length: count }, (_, at) => cell(header[at] ?? 'PID'));
  const lines = [titles, ...rows];
  const widths = titles.map((_, at) => Math.max(...lines.map((row) => row[at]?.text.length ?? 0)));
  return lines
    .map((row) => {
      const cells = row.map(({ text, state }, at) => {
        const gap = at === row.length - 1 ? 0 : (widths[at] ?? 0) - text.length + GAP;
        return `${paint(state, text)}${' '.repeat(gap)}`;
      });
      return `${cells.join('')}\n`;
    })
    .join('');
}

/** Removes control and format characters from texts of other hosts, because a terminal would interpret them. */
function plain(text: string): string {
  const characters = [
    ...text
      .slice(0, 4 * MAX_TEXT)
      .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
      .trim(),
  ];
  return characters.length <= MAX_TEXT ? characters.join('') : `${characters.slice(0, MAX_TEXT).join('')}…`;
}
