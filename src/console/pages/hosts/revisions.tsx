/** Revisions of the control plane by component and host, and differences of settings. */

import { useState } from 'preact/hooks';
import type { ResourceType } from '../../../api/meta/object.ts';
import { type AnyObject, CONFIG_MAPS } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import { type NodeRevision, nodeRevisions, OPERANDS, revisionViews } from '../../data/hosts/revisions.ts';
import { kubectl } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { useFeed, useNow } from '../../ui/hooks.ts';
import { State } from '../../ui/parts.tsx';
import { ShortTable } from '../../ui/short-table.tsx';
import { DiffOf } from './diff.tsx';

type Operand = (typeof OPERANDS)[number];

const TYPES: ReadonlyMap<string, ResourceType<AnyObject>> = new Map(
  OPERANDS.map(({ plural, kind }) => [
    plural,
    { group: 'operator.openshift.io', version: 'v1', kind, plural, namespaced: false },
  ]),
);

export default function Revisions() {
  const [operand, setOperand] = useState<Operand>(OPERANDS[1]);
  useCommand(kubectl('get', `${operand.plural}.operator.openshift.io`, 'cluster', '-o', 'yaml'));
  return (
    <>
      <div class="row">
        <label>
          Component{' '}
          <select
            value={operand.name}
            onChange={({ currentTarget }) =>
              setOperand(OPERANDS.find(({ name }) => name === currentTarget.value) ?? OPERANDS[1])
            }
          >
            {OPERANDS.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <Component key={operand.name} operand={operand} />
    </>
  );
}

function Component({ operand }: { readonly operand: Operand }) {
  const { items, error } = useFeed(CONFIG_MAPS, {
    namespace: `openshift-${operand.name}`,
    labelSelector: 'hyperedge.dev/revision-status=true',
  });
  const nowMs = useNow();
  const revisions = revisionViews(items);
  return (
    <>
      <Hosts operand={operand} />
      <h2>Revisions</h2>
      {error === undefined ? null : <p class="bad">{error.message}</p>}
      <ul>
        {revisions.map(({ number, state, reason, created }) => (
          <li key={number}>
            Revision {number}, {state}, {ageText(created, nowMs)} old: {reason}
          </li>
        ))}
      </ul>
      <h2>Settings of the operator</h2>
      <DiffOf
        sides={revisions.map(({ number, settings }) => ({ name: String(number), text: settings }))}
        same="The settings are the same."
      />
      <p class="muted">
        The files of a revision are on the disks of the masters only. Run{' '}
        <code>hyperedge revisions diff {operand.name} REVISION</code> there.
      </p>
    </>
  );
}

function RevisionState({ current, target, failed }: NodeRevision) {
  if (target > 0) return <State level="warn" text={`installs ${target}`} />;
  if (failed > current) return <State level="bad" text={`revision ${failed} failed`} />;
  return <State level="good" text="installed" />;
}

/** Hosts of a component with their revisions. */
export function Hosts({ operand }: { readonly operand: Operand }) {
  const type = TYPES.get(operand.plural);
  const { items, error } = useFeed(type);
  const nodes = items.flatMap(nodeRevisions);
  if (error !== undefined && items.length === 0) return <p class="bad">{error.message}</p>;
  return (
    <ShortTable
      label="Hosts"
      caption={`Hosts of ${operand.name}`}
      columns={['Host', 'Revision', 'State', 'Errors']}
      rows={nodes.map((each) => ({
        key: each.node,
        cells: [each.node, each.current, <RevisionState key="state" {...each} />, each.errors.join(' ')],
      }))}
    />
  );
}
