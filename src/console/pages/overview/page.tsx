/** Overview: health in one sentence, problems, capacity and usage, recent events, operators and update state. */
import type { Node, ObjectReference } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { humanDuration } from '../../../api/printing/duration.ts';
import {
  CLUSTER_OPERATORS,
  CLUSTER_VERSIONS,
  conditionOf,
  EVENTS,
  listAt,
  NODES,
  PODS,
  RIGS,
  textAt,
} from '../../data/api/resources.ts';
import { ageText, quantityNumber, resourceText, shareText } from '../../data/format.ts';
import { clusterHealth } from '../../data/health.ts';
import { answering } from '../../data/hosts/contact.ts';
import { type History, readHistory, type Span, sumOfNodes, USAGE_PLOTS } from '../../data/hosts/history.ts';
import { alertsOf, expiriesOf, snapshotsOf } from '../../data/hosts/maintenance.ts';
import { nodeState } from '../../data/hosts/node-state.ts';
import { currentUsage, usageOfNodes } from '../../data/hosts/usage.ts';
import { sanitizeLines } from '../../data/plain-text.ts';
import { serverClock } from '../../session/clock.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { Freshness } from '../../ui/data-table.tsx';
import { useFeed, useNow, usePoll } from '../../ui/hooks.ts';
import { LostHosts } from '../../ui/lost-hosts.tsx';
import { type Level, Link, pathOf, State } from '../../ui/parts.tsx';
import { Plots } from '../../ui/plots.tsx';
import { OwnNamespaces } from './own-namespaces.tsx';

const LEVELS: Readonly<Record<ReturnType<typeof clusterHealth>['level'], Level>> = {
  good: 'good',
  warning: 'warn',
  error: 'bad',
  unknown: 'muted',
};
const MAX_EVENTS = 10;
const NOTABLE_OFFSET_MS = 60_000;
/** Maximum number of nodes whose history is read. */
const MAX_NODES = 20;
const METRICS = USAGE_PLOTS.flatMap(({ lines }) => lines.map(({ metric }) => metric));

export default function Overview() {
  useCommand('kubectl get nodes,clusterversion,clusteroperators');
  const nodes = useFeed(NODES);
  const pods = useFeed(PODS);
  const operators = useFeed(CLUSTER_OPERATORS);
  const known = <T,>({ version, items }: { version: number; items: readonly T[] }) => (version > 0 ? items : undefined);
  const rigs = useFeed(RIGS);
  const health = clusterHealth({
    nodes: known(nodes),
    pods: known(pods),
    operators: known(operators),
    rigs: known(rigs),
  });
  if (nodes.version === 0 && isApiError(nodes.error, 'Forbidden'))
    return (
      <>
        <h1>Overview</h1>
        <p>Your roles do not include the nodes of the cluster. You can use the namespaces below.</p>
        <OwnNamespaces />
      </>
    );
  return (
    <>
      <h1>Overview</h1>
      <p class="health" data-level={health.level}>
        <State level={LEVELS[health.level]} text={health.sentence} /> <Freshness of={nodes} />
      </p>
      {nodes.error !== undefined && nodes.version === 0 ? <p class="bad">{nodes.error.message}</p> : null}
      {health.problems.length === 0 ? null : (
        <ul>
          {health.problems.map(({ title, detail, link, severity }) => (
            <li key={title}>
              <Link to={link}>
                <State level={severity === 'error' ? 'bad' : 'warn'} text={title} />
              </Link>{' '}
              {sanitizeLines(detail)}
            </li>
          ))}
        </ul>
      )}
      <WrongClock />
      <LostHosts nodes={nodes.items} />
      <Alerts nodes={nodes.items} />
      <div class="cards">
        <Update />
        <Maintenance nodes={nodes.items} />
        <Capacity />
        <section class="card" aria-label="Nodes">
          <h2>Nodes</h2>
          <ul>
            {nodes.items.map((node) => (
              <li key={node.metadata?.name}>
                <Link to={pathOf('nodes', node.metadata?.name ?? '')}>{node.metadata?.name}</Link>{' '}
                <State {...nodeState(node)} />
              </li>
            ))}
          </ul>
        </section>
      </div>
      <Usage nodes={nodes.items} />
      <RecentEvents />
    </>
  );
}

/** Note about a wrong clock of this computer, which also makes browsers refuse certificates. */
function WrongClock() {
  useNow();
  const { offsetMs } = serverClock;
  if (Math.abs(offsetMs) < NOTABLE_OFFSET_MS) return null;
  return (
    <p class="muted">
      The clock of this computer is {humanDuration(Math.abs(offsetMs))} {offsetMs > 0 ? 'behind' : 'ahead of'} the clock
      of the API server. The ages in the console use the clock of the API server.
    </p>
  );
}

function Alerts({ nodes }: { readonly nodes: readonly Node[] }) {
  const alerts = alertsOf(nodes);
  if (alerts.length === 0) return null;
  return (
    <section aria-label="Alerts">
      <h2>Alerts</h2>
      {alerts.map(({ name, node, severity, summary, fix }) => (
        <div key={`${node} ${name}`} class={`card finding ${severity === 'critical' ? 'error' : 'warning'}`}>
          <p>
            <State level={severity === 'critical' ? 'bad' : 'warn'} text={`${name} (${severity})`} /> on{' '}
            <Link to={pathOf('nodes', node)}>{node}</Link>: {summary}
          </p>
          <p>Fix: {fix}</p>
        </div>
      ))}
    </section>
  );
}

function Maintenance({ nodes }: { readonly nodes: readonly Node[] }) {
  const parts = [
    { title: 'Certificates', found: expiriesOf(nodes) },
    { title: 'Snapshots', found: snapshotsOf(nodes) },
  ];
  if (parts.every(({ found }) => found.length === 0)) return null;
  return (
    <section class="card" aria-label="Maintenance">
      <h2>Maintenance</h2>
      {parts.map(({ title, found }) =>
        found.map(({ node, text, needsAttention }) => (
          <p key={`${title} ${node}`}>
            <State level={needsAttention ? 'warn' : 'good'} text={title} />: {text} (
            <Link to={pathOf('nodes', node)}>{node}</Link>)
          </p>
        )),
      )}
    </section>
  );
}

function Update() {
  const { items, error } = useFeed(CLUSTER_VERSIONS);
  const [version] = items;
  if (error !== undefined || version === undefined) return null;
  const available = listAt(version, 'status', 'availableUpdates').map((each) => textAt(each, 'version'));
  const progressing = conditionOf(version, 'Progressing');
  const failing = conditionOf(version, 'Failing');
  const [latest] = listAt(version, 'status', 'history');
  return (
    <section class="card" aria-label="Version">
      <h2>Version</h2>
      <p>
        {textAt(version, 'status', 'desired', 'version')}{' '}
        {failing?.status === 'True' ? (
          <State level="bad" text={failing.message} />
        ) : progressing?.status === 'True' ? (
          <State level="warn" text={progressing.message} />
        ) : (
          <State level="good" text="installed" />
        )}
      </p>
      <p>{available.length === 0 ? 'No update is available.' : `Available: ${available.join(', ')}`}</p>
      {latest === undefined ? null : (
        <p class="muted">
          {textAt(latest, 'completionTime') === ''
            ? `Started at ${textAt(latest, 'startedTime')}`
            : `Completed at ${textAt(latest, 'completionTime')}`}
        </p>
      )}
      <Link to="/hosts">Hosts and updates</Link>
    </section>
  );
}

function Capacity() {
  const { items } = useFeed(NODES);
  const nodes = answering(items);
  const read = usePoll((signal) => usageOfNodes(api, signal), 15_000, 'nodes');
  const usage = read === undefined ? undefined : currentUsage(read, nodes);
  return (
    <section class="card" aria-label="Capacity and usage">
      <h2>Capacity and usage</h2>
      {nodes.length === items.length ? null : (
        <p class="warn">
          Of {nodes.length} of {items.length} nodes; the others do not answer.
        </p>
      )}
      {(['cpu', 'memory'] as const).map((resource) => {
        const used = usage?.reduce((sum, each) => sum + each[resource], 0);
        const all = total(nodes, resource);
        return (
          <p key={resource}>
            {resource === 'cpu' ? 'CPU' : 'Memory'}{' '}
            {used === undefined
              ? `${resourceText(resource, all)}; the usage is not known`
              : `${resourceText(resource, used)} (${shareText(used, all)}) of ${resourceText(resource, all)}`}{' '}
            {used === undefined ? null : (
              <meter aria-label={`Share of ${resource} in use`} min={0} max={all || 1} high={all * 0.9} value={used} />
            )}
          </p>
        );
      })}
    </section>
  );
}

/** Capacity and usage over time. Nodes that do not respond are neither queried nor part of the sums. */
function Usage({ nodes }: { readonly nodes: readonly Node[] }) {
  const shown = answering(nodes).slice(0, MAX_NODES);
  if (shown.length === 0) return null;
  const names = shown.map(({ metadata }) => metadata?.name ?? '');
  const limits = { cpu: total(shown, 'cpu'), memory: total(shown, 'memory') };
  const label = shown.length === nodes.length ? 'Usage' : `Usage of ${shown.length} of ${nodes.length} nodes`;
  const read = async (since: Span, signal: AbortSignal): Promise<History | undefined> => {
    const results = await Promise.allSettled(
      names.map((name) => readHistory(api, name, { metrics: METRICS, since }, signal)),
    );
    return sumOfNodes(names, results);
  };
  return <Plots label={label} plots={USAGE_PLOTS} of={names.join()} limits={limits} read={read} />;
}

const total = (nodes: readonly Node[], resource: string): number =>
  nodes.reduce((sum, node) => sum + (quantityNumber(node.status?.allocatable?.[resource]) ?? 0), 0);

/** Name with the namespace, which objects of the cluster do not have. */
const nameOf = ({ namespace = '', name = '' }: ObjectReference = {}): string =>
  namespace === '' ? name : `${namespace}/${name}`;

function RecentEvents() {
  const { items, error } = useFeed(EVENTS);
  const nowMs = useNow();
  const timeOf = (event: (typeof items)[number]): string =>
    event.lastTimestamp ?? event.eventTime ?? event.metadata?.creationTimestamp ?? '';
  const newest = items.toSorted((a, b) => timeOf(b).localeCompare(timeOf(a))).slice(0, MAX_EVENTS);
  return (
    <section aria-label="Recent events">
      <h2>Recent events</h2>
      {error === undefined ? null : <p class="bad">{error.message}</p>}
      <ul class="events">
        {newest.map((event) => (
          <li key={event.metadata?.uid}>
            <span class="muted">{ageText(timeOf(event), nowMs)}</span>{' '}
            {event.type === 'Warning' ? <State level="warn" text={event.reason ?? ''} /> : event.reason}{' '}
            {event.involvedObject?.kind} {nameOf(event.involvedObject)}: {sanitizeLines(event.message ?? '')}
          </li>
        ))}
      </ul>
    </section>
  );
}
