/** One pod: explanation, containers, events, logs and terminal. */

import { useState } from 'preact/hooks';
import type { ContainerStatus, Pod } from '../../../api/generated/core/v1.ts';
import { questionOf } from '../../data/api/access.ts';
import { EVENTS, NODES, PODS } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import { readHistory, USAGE_PLOTS } from '../../data/hosts/history.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { sanitizeLines } from '../../data/plain-text.ts';
import { explainPod, podStatusText } from '../../data/pods/explain.ts';
import { failedRuns, type LogRun } from '../../data/pods/failed-runs.ts';
import { remove } from '../../data/workloads/workloads.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { useFeed, useNow, useObject } from '../../ui/hooks.ts';
import { Later } from '../../ui/later.tsx';
import { Action, Conditions, Findings, type Level, Link, Missing, pathOf, State } from '../../ui/parts.tsx';
import { Plots } from '../../ui/plots.tsx';
import { podLevel } from '../../ui/pod-table.tsx';
import { ShortTable } from '../../ui/short-table.tsx';
import { Debug } from './debug.tsx';
import { LastOutput } from './last-output.tsx';
import { Logs } from './logs.tsx';
import { TerminalView } from './terminal.tsx';

const METRICS = USAGE_PLOTS.flatMap(({ lines }) => lines.map(({ metric }) => metric));
const VIEWS = ['State', 'Logs', 'Terminal', 'Files', 'Debug'] as const;
const loadFiles = () => import('./files.tsx');

export default function PodPage({ params }: PageProps) {
  const { namespace = '', name = '' } = params;
  const { object: pod, snapshot } = useObject(PODS, name, namespace);
  const [view, setView] = useState<(typeof VIEWS)[number]>('State');
  const [run, setRun] = useState<LogRun>();
  const show = (next: (typeof VIEWS)[number], chosen?: LogRun): void => {
    setRun(chosen);
    setView(next);
  };
  if (pod === undefined || pod === null)
    return <Missing title={`Pod ${namespace}/${name}`} object={pod} error={snapshot.error} />;
  return (
    <>
      <h1>
        Pod {namespace}/{name}
      </h1>
      <div class="row">
        <State level={podLevel(pod)} text={podStatusText(pod)} />
        {VIEWS.map((each) => (
          <button key={each} type="button" aria-pressed={view === each} onClick={() => show(each)}>
            {each}
          </button>
        ))}
        <Link to={`${pathOf('resources', 'core', 'v1', 'pods', name)}?ns=${encodeURIComponent(namespace)}`}>YAML</Link>
        <Action
          label="Delete"
          question={questionOf('delete', PODS, namespace, { name })}
          confirm={`Pod ${namespace}/${name} is deleted.`}
          done={`${name} is being deleted.`}
          run={async () => {
            await remove(api, PODS, name, namespace);
            navigate('/pods');
          }}
        />
      </div>
      {view === 'State' ? <PodState pod={pod} onLogs={(chosen) => show('Logs', chosen)} /> : null}
      {view === 'Logs' ? <Logs pod={pod} run={run} /> : null}
      {view === 'Terminal' ? <TerminalView pod={pod} /> : null}
      {view === 'Files' ? <Later load={loadFiles} props={{ pod }} /> : null}
      {view === 'Debug' ? <Debug pod={pod} /> : null}
    </>
  );
}

function PodState({ pod, onLogs }: { readonly pod: Pod; readonly onLogs: (run: LogRun) => void }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  useCommand(describeCommand(PODS, name, namespace));
  const nowMs = useNow();
  const { items: nodes } = useFeed(NODES);
  const { items: events } = useFeed(EVENTS, { namespace, fieldSelector: `involvedObject.name=${name}` });
  const own = events.filter(({ involvedObject }) => involvedObject?.uid === pod.metadata?.uid);
  const findings = explainPod({ pod, events: own, nodes, nowMs });
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  const initNames = new Set(initContainerStatuses.map(({ name: container }) => container));
  const statuses = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
  return (
    <>
      <Findings findings={findings} />
      {failedRuns(pod).map((each) => (
        <LastOutput key={each.container} pod={pod} run={each} onLogs={onLogs} />
      ))}
      <p>
        Node{' '}
        {pod.spec?.nodeName === undefined ? (
          'not chosen yet'
        ) : (
          <Link to={pathOf('nodes', pod.spec.nodeName)}>{pod.spec.nodeName}</Link>
        )}
        , address {pod.status?.podIP ?? 'none'}, service account {pod.spec?.serviceAccountName ?? 'default'}
      </p>
      <ShortTable
        label="Containers"
        columns={['Name', 'State', 'Ready', 'Restarts', 'Image']}
        rows={statuses.map(({ name: container, state, ready, restartCount, image }) => ({
          key: container,
          cells: [
            initNames.has(container) ? `${container} (init)` : container,
            <State key="state" {...containerState(state)} />,
            ready === true ? 'yes' : 'no',
            restartCount,
            image,
          ],
        }))}
      />
      {pod.spec?.nodeName === undefined ? null : (
        <PodUsage node={pod.spec.nodeName} namespace={namespace} name={name} />
      )}
      <Conditions object={pod} nowMs={nowMs} />
      <h2>Events</h2>
      {own.length === 0 ? <p class="muted">There are no events. The server keeps them for a limited time.</p> : null}
      <ul>
        {own.map((event) => (
          <li key={event.metadata?.uid}>
            <span class="muted">{ageText(event.lastTimestamp ?? event.metadata?.creationTimestamp, nowMs)}</span>{' '}
            {event.reason}: {sanitizeLines(event.message ?? '')}{' '}
            {(event.count ?? 1) > 1 ? `(${event.count} times)` : ''}
          </li>
        ))}
      </ul>
    </>
  );
}

/** State of a container. A container that is created, or has ended without an error, is no problem. */
function containerState(state: ContainerStatus['state']): { readonly level: Level; readonly text: string } {
  if (state?.running !== undefined) return { level: 'good', text: 'Running' };
  const { waiting, terminated } = state ?? {};
  if (terminated !== undefined) {
    const code = terminated.exitCode ?? 0;
    const text = terminated.reason ?? 'Terminated';
    return code === 0 ? { level: 'muted', text } : { level: 'bad', text: `${text} (exit code ${code})` };
  }
  const text = waiting?.reason ?? 'unknown';
  return { level: /Err|BackOff|Invalid/.test(text) ? 'bad' : 'warn', text };
}

function PodUsage({
  node,
  namespace,
  name,
}: {
  readonly node: string;
  readonly namespace: string;
  readonly name: string;
}) {
  return (
    <Plots
      label="Usage"
      plots={USAGE_PLOTS}
      of={`${node} ${namespace}/${name}`}
      read={(since, signal) => readHistory(api, node, { metrics: METRICS, since, pod: { namespace, name } }, signal)}
    />
  );
}
