/** One workload: live state, scale, restart, roll back, delete, and its pods. */

import { useState } from 'preact/hooks';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { countText } from '../../../base/text/count-text.ts';
import { questionOf } from '../../data/api/access.ts';
import { conditionsOf, EVENTS, NODES, numberAt, PODS } from '../../data/api/resources.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { explainMissingPods } from '../../data/pods/explain.ts';
import { isFromForm, removeApplication } from '../../data/workloads/form.ts';
import { workloadFindings } from '../../data/workloads/workload-findings.ts';
import {
  imagesOf,
  podSelectorOf,
  remove,
  restartWorkload,
  scaleTo,
  workloadState,
} from '../../data/workloads/workloads.ts';
import { serverClock } from '../../session/clock.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { useFeed, useNow, useObject } from '../../ui/hooks.ts';
import { Action, Conditions, Findings, Link, Missing, pathOf, State } from '../../ui/parts.tsx';
import { PodTable } from '../../ui/pod-table.tsx';
import { canRestart, canScale, WORKLOADS } from './kinds.ts';
import { levelOf } from './page.tsx';
import { Pause, RollBack, RollOut } from './rollout.tsx';

export default function WorkloadPage({ params }: PageProps) {
  const { kind = '', namespace = '', name = '' } = params;
  const type = WORKLOADS.find(({ plural }) => plural === kind);
  if (type === undefined) return <Missing title={kind} object={null} error={undefined} />;
  return <Workload type={type} namespace={namespace} name={name} />;
}

interface Target {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
}

function Workload(target: Target) {
  const { type, namespace, name } = target;
  useCommand(describeCommand(type, name, namespace));
  const { object, snapshot } = useObject<KubeObject>(type, name, namespace);
  const nowMs = useNow();
  const title = `${type.kind} ${namespace}/${name}`;
  if (object === undefined || object === null) return <Missing title={title} object={object} error={snapshot.error} />;
  const state = workloadState({ ...object, kind: type.kind });
  const selector = podSelectorOf(object);
  return (
    <>
      <h1>{title}</h1>
      <p aria-live="polite">
        <strong class="ready">
          {state.ready} of {state.desired}
        </strong>{' '}
        <State level={levelOf(state)} text={state.text} />
      </p>
      <p class="muted">{imagesOf(object)}</p>
      <Actions target={target} object={object} />
      {selector === undefined || selector === '' ? null : <FailingPods namespace={namespace} selector={selector} />}
      {canRestart(type) ? <RollOut type={type} object={object} /> : null}
      <MissingPods object={object} namespace={namespace} name={name} />
      <Conditions object={object} nowMs={nowMs} />
      {selector === undefined || selector === '' ? null : (
        <>
          <h2>Pods</h2>
          <PodTable scope={{ namespace, labelSelector: selector }} />
        </>
      )}
    </>
  );
}

function Actions({ target, object }: { readonly target: Target; readonly object: KubeObject }) {
  const { type, namespace, name } = target;
  const replicas = numberAt(object, 1, 'spec', 'replicas');
  const [wanted, setWanted] = useState<string>();
  const scale = questionOf('patch', type, namespace, { name, subresource: 'scale' });
  const change = questionOf('patch', type, namespace, { name });
  const isApplication = type.plural === 'deployments' && isFromForm(object);
  return (
    <div class="row">
      {canScale(type) ? (
        <>
          <label>
            Replicas{' '}
            <input
              type="number"
              min={0}
              max={10_000}
              value={wanted ?? String(replicas)}
              onInput={({ currentTarget }) => setWanted(currentTarget.value)}
            />
          </label>
          <Action
            label="Scale"
            question={scale}
            done={`${name} is scaled to ${wanted ?? replicas}.`}
            run={() => scaleTo(api, target, Number(wanted ?? replicas))}
          />
        </>
      ) : null}
      {canRestart(type) ? (
        <Action
          label="Restart"
          question={change}
          confirm={`All pods of ${name} are replaced, one after the other.`}
          done={`${name} is restarting.`}
          run={() => restartWorkload(api, target, serverClock.nowMs())}
        />
      ) : null}
      {canRestart(type) ? <RollBack type={type} object={object} /> : null}
      {type.plural === 'deployments' ? <Pause object={object} /> : null}
      <Link
        to={`${pathOf('resources', type.group || 'core', type.version, type.plural, name)}?ns=${encodeURIComponent(namespace)}`}
      >
        YAML
      </Link>
      <Action
        label="Delete"
        question={questionOf('delete', type, namespace, { name })}
        confirm={
          isApplication
            ? `${type.kind} ${namespace}/${name}, its pods, and the service and route of the form are deleted.`
            : `${type.kind} ${namespace}/${name} and its pods are deleted.`
        }
        done={`${name} is deleted.`}
        run={async () => {
          if (isApplication) await removeApplication(api, name, namespace);
          else await remove(api, type, name, namespace);
          navigate('/workloads');
        }}
      />
    </div>
  );
}

/** Explains in words why pods of the workload do not run. */
function FailingPods({ namespace, selector }: { readonly namespace: string; readonly selector: string }) {
  const { items: pods } = useFeed(PODS, { namespace, labelSelector: selector });
  const { items: events } = useFeed(EVENTS, { namespace });
  const { items: nodes } = useFeed(NODES);
  const nowMs = useNow();
  return workloadFindings(pods, { events, nodes, nowMs }).map(({ finding, pod, pods: count }) => (
    <section key={finding.title} aria-label="Reason of the failure">
      <Findings findings={[finding]} />
      <p>
        <Link to={pathOf('pods', namespace, pod)}>Logs and events of {pod}</Link>
        {count === 1 ? '' : `; ${countText(count, 'pod')} have this problem`}
      </p>
    </section>
  ));
}

function MissingPods({ object, namespace, name }: { object: KubeObject; namespace: string; name: string }) {
  const { items } = useFeed(EVENTS, { namespace });
  const messages = [
    ...conditionsOf(object).map(({ message }) => message),
    ...items
      .filter(
        ({ involvedObject, reason }) => reason === 'FailedCreate' && involvedObject?.name?.startsWith(name) === true,
      )
      .map(({ message = '' }) => message),
  ];
  const finding = explainMissingPods(messages);
  return finding === undefined ? null : <Findings findings={[finding]} />;
}
