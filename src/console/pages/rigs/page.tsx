/** Rigs with their holder and queue, and claims. */
import { useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { listAt, RIG_CLAIMS, RIGS, textAt } from '../../data/api/resources.ts';
import { timeText } from '../../data/format.ts';
import { claimRig, releaseText } from '../../data/hosts/rigs.ts';
import { remove } from '../../data/workloads/workloads.ts';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { Lists, listView } from '../../ui/lists.tsx';
import { currentNamespace } from '../../ui/namespaces.tsx';
import { Action, Link, pathOf, State } from '../../ui/parts.tsx';

const namespaceForClaims = (): string => currentNamespace() || 'default';

function RigActions({ name }: { readonly name: string }) {
  const [duration, setDuration] = useState('');
  const namespace = namespaceForClaims();
  return (
    <div class="row">
      <label>
        Duration<span class="hidden"> of the claim of {name}</span>{' '}
        <input
          class="short"
          placeholder="1h"
          value={duration}
          onInput={({ currentTarget }) => setDuration(currentTarget.value.trim())}
        />
      </label>
      <Action
        label={`Claim ${name}`}
        question={questionOf('create', RIG_CLAIMS, namespace)}
        run={async () => {
          const claim = await claimRig(api, name, namespace, duration);
          navigate(pathOf('rigclaims', namespace, claim));
        }}
      />
      <Link to={pathOf('rigs', name)}>Queue, console, power and uses</Link>
    </div>
  );
}

const VIEWS = [
  listView(RIGS, 'Rigs', [
    { name: 'Node', text: (rig) => textAt(rig, 'status', 'node') || textAt(rig, 'spec', 'node') },
    {
      name: 'Fixtures',
      text: (rig) =>
        listAt(rig, 'spec', 'fixtures')
          .map((each) => `${textAt(each, 'name')} (${textAt(each, 'role')})`)
          .join(', '),
    },
    {
      name: 'Holder',
      text: (rig) => textAt(rig, 'status', 'holder', 'name'),
      view: (rig) => {
        const holder = textAt(rig, 'status', 'holder', 'name');
        return holder === '' ? (
          <State level="good" text="free" />
        ) : (
          `${textAt(rig, 'status', 'holder', 'namespace')}/${holder} of ${textAt(rig, 'status', 'holder', 'requester')}`
        );
      },
    },
    { name: 'Queue', text: (rig) => textAt(rig, 'status', 'queue') || '0' },
    { name: 'Until', text: (rig) => timeText(textAt(rig, 'status', 'expiresAt')) },
    {
      name: 'Actions',
      text: () => '',
      isControls: true,
      view: (rig) => <RigActions name={rig.metadata?.name ?? ''} />,
    },
  ]),
  listView(RIG_CLAIMS, 'Rig claims', [
    { name: 'State', text: (claim) => textAt(claim, 'status', 'phase') },
    { name: 'Rig', text: (claim) => textAt(claim, 'status', 'rig') || textAt(claim, 'spec', 'rigName') },
    { name: 'Position', text: (claim) => textAt(claim, 'status', 'position') },
    { name: 'Until', text: (claim) => timeText(textAt(claim, 'status', 'expiresAt')) },
    {
      name: 'Actions',
      text: () => '',
      isControls: true,
      view: (claim) => {
        const { name = '', namespace = '' } = claim.metadata ?? {};
        return (
          <div class="row">
            <Link to={pathOf('rigclaims', namespace, name)}>Console and power</Link>
            <Action
              label={`Release ${name}`}
              question={questionOf('delete', RIG_CLAIMS, namespace)}
              confirm={releaseText(namespace, name)}
              done="The claim is released."
              run={() => remove(api, RIG_CLAIMS, name, namespace)}
            />
          </div>
        );
      },
    },
  ]),
];

export default function Rigs() {
  return <Lists title="Rigs" views={VIEWS} />;
}
