/** Rigs with their holder and queue, and claims. */
import { collectionPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/access.ts';
import { listAt, RIG_CLAIMS, RIGS, textAt } from '../../data/resources.ts';
import { remove } from '../../data/workloads.ts';
import { api } from '../../ui/context.ts';
import { Lists, listView } from '../../ui/lists.tsx';
import { Action, currentNamespace, State } from '../../ui/parts.tsx';

const namespaceForClaims = (): string => currentNamespace() || 'default';

const VIEWS = [
  listView(RIGS, [
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
    { name: 'Until', text: (rig) => textAt(rig, 'status', 'expiresAt') },
    {
      name: 'Actions',
      text: () => '',
      view: (rig) => (
        <Action
          label={`Claim ${rig.metadata?.name}`}
          question={questionOf('create', RIG_CLAIMS, namespaceForClaims())}
          done={`The rig is claimed in namespace ${namespaceForClaims()}.`}
          run={() =>
            api.json(collectionPath(RIG_CLAIMS, namespaceForClaims()), {
              method: 'POST',
              body: {
                apiVersion: 'rig.hyperedge.dev/v1alpha1',
                kind: 'RigClaim',
                metadata: { generateName: 'console-' },
                spec: { rigName: rig.metadata?.name },
              },
            })
          }
        />
      ),
    },
  ]),
  listView(RIG_CLAIMS, [
    { name: 'State', text: (claim) => textAt(claim, 'status', 'phase') },
    { name: 'Rig', text: (claim) => textAt(claim, 'status', 'rig') || textAt(claim, 'spec', 'rigName') },
    { name: 'Position', text: (claim) => textAt(claim, 'status', 'position') },
    { name: 'Until', text: (claim) => textAt(claim, 'status', 'expiresAt') },
    {
      name: 'Actions',
      text: () => '',
      view: (claim) => {
        const { name = '', namespace = '' } = claim.metadata ?? {};
        return (
          <Action
            label={`Release ${name}`}
            question={questionOf('delete', RIG_CLAIMS, namespace)}
            confirm={`The claim ${namespace}/${name} is deleted and its rig becomes free.`}
            done="The rig is released."
            run={() => remove(api, RIG_CLAIMS, name, namespace)}
          />
        );
      },
    },
  ]),
];

export default function Rigs() {
  return <Lists title="Rigs" views={VIEWS} />;
}
