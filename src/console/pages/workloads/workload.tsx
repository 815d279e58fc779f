/** One workload: live state, scale, restart, roll back, delete, and its pods. */
import { useState } from 'preact/hooks';
import type { Deployment } from '../../../api/generated/apps/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { questionOf } from '../../data/access.ts';
import { explainMissingPods } from '../../data/explain.ts';
import { ageText } from '../../data/format.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { conditionsOf, DEPLOYMENTS, EVENTS, numberAt } from '../../data/resources.ts';
import {
  imagesOf,
  podSelectorOf,
  type Revision,
  readRevisions,
  remove,
  restart,
  rollBack,
  scaleTo,
  workloadState,
} from '../../data/workloads.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { useFeed, useNow, useObject } from '../../ui/hooks.ts';
import { Action, Conditions, Dialog, Findings, Link, Missing, pathOf, State } from '../../ui/parts.tsx';
import { PodTable } from '../../ui/pod-table.tsx';
import { canRestart, canScale, WORKLOADS } from './kinds.ts';
import { levelOf } from './page.tsx';

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
          run={() => restart(api, target, Date.now())}
        />
      ) : null}
      {type.plural === 'deployments' ? <RollBack deployment={object as Deployment} /> : null}
      <Link
        to={`${pathOf('resources', type.group || 'core', type.version, type.plural, name)}?ns=${encodeURIComponent(namespace)}`}
      >
        YAML
      </Link>
      <Action
        label="Delete"
        question={questionOf('delete', type, namespace, { name })}
        confirm={`${type.kind} ${namespace}/${name} and its pods are deleted.`}
        done={`${name} is deleted.`}
        run={async () => {
          await remove(api, type, name, namespace);
          navigate('/workloads');
        }}
      />
    </div>
  );
}

function RollBack({ deployment }: { readonly deployment: Deployment }) {
  const [revisions, setRevisions] = useState<readonly Revision[]>();
  const { namespace, name = '' } = deployment.metadata ?? {};
  const question = questionOf('patch', DEPLOYMENTS, namespace, { name });
  return (
    <>
      <Action
        label="Roll back"
        question={question}
        run={async () => setRevisions(await readRevisions(api, deployment))}
      />
      {revisions === undefined ? null : (
        <Dialog label={`Revisions of ${name}`} onClose={() => setRevisions(undefined)}>
          <ul>
            {revisions.map((revision) => (
              <li key={revision.name}>
                Revision {revision.number}, {ageText(revision.created, Date.now())} old: {revision.images.join(', ')}{' '}
                {revision.isCurrent ? (
                  <strong>current</strong>
                ) : (
                  <Action
                    label={`Roll back to ${revision.number}`}
                    question={question}
                    done={`${name} is rolled back to revision ${revision.number}.`}
                    run={async () => {
                      await rollBack(api, deployment, revision);
                      setRevisions(undefined);
                    }}
                  />
                )}
              </li>
            ))}
          </ul>
          <button type="button" onClick={() => setRevisions(undefined)}>
            Close
          </button>
        </Dialog>
      )}
    </>
  );
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
