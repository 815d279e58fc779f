/** Roll-out of a workload: live progress by revision, pause, and the return to a former revision with differences. */
import { useState } from 'preact/hooks';
import type { ReplicaSet } from '../../../api/generated/apps/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { questionOf } from '../../data/api/access.ts';
import { conditionOf, DEPLOYMENTS, fieldAt, REPLICA_SETS } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import { type DiffLine, diffLines, hunks } from '../../data/manifests/diff.ts';
import { type Revision, readRevisions, rollBack, rolloutSteps, setPaused } from '../../data/workloads/rollout.ts';
import { podSelectorOf, workloadState } from '../../data/workloads/workloads.ts';
import { serverClock } from '../../session/clock.ts';
import { showFailure } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { useFeed } from '../../ui/hooks.ts';
import { Action, Dialog, State } from '../../ui/parts.tsx';
import { levelOf } from './page.tsx';

const NONE: readonly ReplicaSet[] = [];

export interface RollOutProps {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

export function RollOut({ type, object }: RollOutProps) {
  const { namespace } = object.metadata ?? {};
  const isDeployment = type.plural === 'deployments';
  const { items } = useFeed(isDeployment ? REPLICA_SETS : undefined, {
    namespace,
    labelSelector: podSelectorOf(object),
  });
  const typed = { ...object, kind: type.kind };
  const state = workloadState(typed);
  const progress = conditionOf(object, 'Progressing');
  return (
    <section aria-label="Roll-out" aria-live="polite">
      <h2>Roll-out</h2>
      <p>
        <State level={levelOf(state)} text={state.health === 'good' ? 'complete' : state.text} />{' '}
        {state.health === 'bad' ? progress?.message : ''}
      </p>
      <ul>
        {rolloutSteps(typed, isDeployment ? items : NONE).map(({ label, ready, wanted }) => (
          <li key={label}>
            <progress aria-label={label} max={Math.max(1, wanted)} value={Math.min(ready, wanted)} /> {label}: {ready}{' '}
            of {wanted} ready
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Pause({ object }: { readonly object: KubeObject }) {
  const { name = '', namespace = '' } = object.metadata ?? {};
  const isPaused = fieldAt(object, 'spec', 'paused') === true;
  return (
    <Action
      label={isPaused ? 'Continue the roll-out' : 'Pause the roll-out'}
      question={questionOf('patch', DEPLOYMENTS, namespace, { name })}
      done={isPaused ? `The roll-out of ${name} continues.` : `The roll-out of ${name} is paused.`}
      run={() => setPaused(api, name, namespace, !isPaused)}
    />
  );
}

export function RollBack({ type, object }: RollOutProps) {
  const [revisions, setRevisions] = useState<readonly Revision[]>();
  const { namespace, name = '' } = object.metadata ?? {};
  const question = questionOf('patch', type, namespace, { name });
  const close = (): void => setRevisions(undefined);
  return (
    <>
      <Action
        label="Roll back"
        question={question}
        run={async () => setRevisions(await readRevisions(api, type, object))}
      />
      {revisions === undefined ? null : (
        <Dialog label={`Revisions of ${name}`} onClose={close}>
          {revisions.length < 2 ? <p>There is no former revision.</p> : null}
          <ul>
            {revisions.map((revision) => (
              <li key={revision.name}>
                Revision {revision.number}, {ageText(revision.created, serverClock.nowMs())} old:{' '}
                {revision.images.join(', ')}{' '}
                {revision.isCurrent ? (
                  <strong>current</strong>
                ) : (
                  <>
                    <Changes current={revisions.find(({ isCurrent }) => isCurrent)} revision={revision} />
                    <Action
                      label={`Roll back to ${revision.number}`}
                      question={question}
                      done={`${name} is rolled back to revision ${revision.number}.`}
                      run={async () => {
                        await rollBack(api, type, object, revision);
                        close();
                      }}
                    />
                  </>
                )}
              </li>
            ))}
          </ul>
          <button type="button" onClick={close}>
            Close
          </button>
        </Dialog>
      )}
    </>
  );
}

function Changes({ current, revision }: { readonly current: Revision | undefined; readonly revision: Revision }) {
  const [lines, setLines] = useState<readonly DiffLine[]>();
  const show = (): void => {
    void import('../../data/manifests/yaml.ts').then(
      ({ yamlOf }) => setLines(hunks(diffLines(yamlOf(current?.template ?? {}), yamlOf(revision.template)), 1)),
      showFailure,
    );
  };
  if (lines === undefined)
    return (
      <button type="button" onClick={show}>
        Show the changes<span class="hidden"> of revision {revision.number}</span>
      </button>
    );
  return (
    <pre class="wrap">
      {lines.map(({ kind, text }, index) => (
        <div key={index} class={kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>
          {kind} {text}
        </div>
      ))}
    </pre>
  );
}
