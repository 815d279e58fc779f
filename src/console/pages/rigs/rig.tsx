/** One rig, or the rig of a claim: holder, queue, power, serial console, uses and recordings. */
import { useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { type AnyObject, listAt, NODES, RIG_CLAIMS, RIGS, textAt } from '../../data/api/resources.ts';
import { timeText } from '../../data/format.ts';
import { explainRig } from '../../data/hosts/explain-rig.ts';
import {
  consolePath,
  POWER_ACTIONS,
  queueOf,
  type RigTarget,
  releaseText,
  switchPower,
  withoutConsole,
  withoutPower,
} from '../../data/hosts/rigs.ts';
import { kubectl } from '../../data/kubectl.ts';
import { sanitizeText } from '../../data/plain-text.ts';
import { remove } from '../../data/workloads/workloads.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { showToast } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { useFeed, useObject } from '../../ui/hooks.ts';
import { Action, Findings, Link, Missing, pathOf, State } from '../../ui/parts.tsx';
import { StreamTerminal } from '../../ui/stream-terminal.tsx';
import { RigHistory } from './history.tsx';
import { Recordings } from './recordings.tsx';

export default function RigPage({ params }: PageProps) {
  const { namespace = '', name = '' } = params;
  return namespace === '' ? <WholeRig name={name} /> : <ClaimedRig namespace={namespace} name={name} />;
}

function WholeRig({ name }: { readonly name: string }) {
  useCommand(kubectl('get', 'rig', name));
  const { object: rig, snapshot } = useObject(RIGS, name);
  const { items: claims, error } = useFeed(RIG_CLAIMS);
  if (rig === undefined || rig === null) return <Missing title={`Rig ${name}`} object={rig} error={snapshot.error} />;
  return (
    <>
      <h1>Rig {name}</h1>
      <RigState rig={rig} />
      <h2>Holder and queue</h2>
      {error === undefined ? <Queue claims={queueOf(name, claims)} /> : <p class="muted">{error.message}</p>}
      <Controls target={{ kind: 'rigs', name, namespace: '' }} rig={rig} />
      <RigHistory rig={rig} />
      <Recordings rig={name} />
    </>
  );
}

function ClaimedRig({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  useCommand(kubectl('get', 'rigclaim', '-n', namespace, name));
  const { object: claim, snapshot } = useObject(RIG_CLAIMS, name, namespace);
  const title = `Rig claim ${namespace}/${name}`;
  if (claim === undefined || claim === null) return <Missing title={title} object={claim} error={snapshot.error} />;
  return (
    <>
      <h1>{title}</h1>
      <Queue claims={[claim]} />
      {textAt(claim, 'status', 'phase') === 'Granted' ? (
        <ClaimControls target={{ kind: 'rigclaims', name, namespace }} rig={textAt(claim, 'status', 'rig')} />
      ) : (
        <p>Console and power are available when the claim is granted.</p>
      )}
    </>
  );
}

function ClaimControls({ target, rig }: { readonly target: RigTarget; readonly rig: string }) {
  const { object } = useObject(RIGS, rig);
  return (
    <>
      {object === undefined || object === null ? null : <RigState rig={object} />}
      <Controls target={target} rig={object ?? undefined} />
    </>
  );
}

/** Node of the rig, and the reasons why the rig does not answer. */
function RigState({ rig }: { readonly rig: AnyObject }) {
  const { items: nodes, version } = useFeed(NODES);
  const node = textAt(rig, 'status', 'node');
  return (
    <>
      {version === 0 ? null : <Findings findings={explainRig(rig, nodes)} />}
      <p>
        Host: {node === '' ? 'none' : <Link to={pathOf('nodes', node)}>{node}</Link>}; fixtures:{' '}
        {listAt(rig, 'spec', 'fixtures')
          .map((each) => `${textAt(each, 'fixture')} (${textAt(each, 'role')})`)
          .join(', ') || 'none'}
      </p>
    </>
  );
}

const untilText = (expiry: string): string => (expiry === '' ? 'without an end' : `until ${timeText(expiry)}`);

function Queue({ claims }: { readonly claims: readonly AnyObject[] }) {
  if (claims.length === 0) return <p>The rig is free.</p>;
  return (
    <ol>
      {claims.map((claim) => {
        const { name = '', namespace = '' } = claim.metadata ?? {};
        const phase = textAt(claim, 'status', 'phase') || 'Pending';
        return (
          <li key={`${namespace}/${name}`}>
            <Link to={pathOf('rigclaims', namespace, name)}>
              {namespace}/{name}
            </Link>{' '}
            of {textAt(claim, 'status', 'requester') || 'unknown'}:{' '}
            <State level={phase === 'Granted' ? 'good' : 'warn'} text={phase} />{' '}
            {phase === 'Granted'
              ? untilText(textAt(claim, 'status', 'expiresAt'))
              : `position ${textAt(claim, 'status', 'position') || 'not known yet'}`}{' '}
            <Action
              label={`Release ${name}`}
              question={questionOf('delete', RIG_CLAIMS, namespace, { name })}
              confirm={releaseText(namespace, name)}
              done="The claim is released."
              run={() => remove(api, RIG_CLAIMS, name, namespace)}
            />
          </li>
        );
      })}
    </ol>
  );
}

/** Controls of a rig. `rig` is undefined if the user may not read rigs; then only the server checks each action. */
function Controls({ target, rig }: { readonly target: RigTarget; readonly rig: AnyObject | undefined }) {
  const { kind, name, namespace } = target;
  const [isOpen, setOpen] = useState(false);
  const type = kind === 'rigs' ? RIGS : RIG_CLAIMS;
  const noConsole = rig === undefined ? undefined : withoutConsole(rig);
  return (
    <>
      <h2>Board</h2>
      <div class="row">
        {POWER_ACTIONS.map((action) => {
          const missing = rig === undefined ? undefined : withoutPower(rig, action);
          return (
            <Action
              key={action}
              label={`Power ${action}`}
              question={questionOf('create', type, namespace, { name, subresource: 'power' })}
              {...(missing === undefined ? {} : { disabled: missing })}
              confirm={`The board of ${name} is switched: ${action}.`}
              run={async () => {
                const output = await switchPower(api, target, action);
                showToast(output === '' ? `The board is switched: ${action}.` : sanitizeText(output));
              }}
            />
          );
        })}
        <Action
          label={isOpen ? 'Close the console' : 'Open the console'}
          question={questionOf('create', type, namespace, { name, subresource: 'console' })}
          {...(noConsole === undefined ? {} : { disabled: noConsole })}
          run={() => setOpen(!isOpen)}
        />
      </div>
      {isOpen ? (
        <StreamTerminal path={consolePath(target)} hasSize={false}>
          <span class="muted">The node records the output. A later console ends this one.</span>
        </StreamTerminal>
      ) : null}
    </>
  );
}
