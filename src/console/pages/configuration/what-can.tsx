/** Permissions of a user, a group or a service account, with the binding that grants each. */
import { useState } from 'preact/hooks';
import { type Bearer, type Grant, READ_BINDINGS, readMemberships, whatCan } from '../../data/api/what-can.ts';
import { readRbac } from '../../data/api/who-can.ts';
import { kubectl } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Action } from '../../ui/parts.tsx';

const KINDS = [
  ['User', 'User'],
  ['Group', 'Group'],
  ['ServiceAccount', 'Service account'],
] as const;

const COLUMNS: readonly Column<Grant>[] = [
  { name: 'Namespace', text: ({ namespace }) => namespace || 'the whole cluster' },
  { name: 'Can', text: ({ verbs }) => verbs },
  { name: 'Resources', text: ({ target }) => target },
  { name: 'Role', text: ({ role }) => role },
  { name: 'Binding', text: ({ binding }) => binding },
  { name: 'Through', text: ({ through }) => through || 'itself' },
];

const asUser = ({ kind, namespace, name }: Bearer): readonly string[] => {
  if (kind === 'Group') return ['--as', 'anyone', '--as-group', name];
  return ['--as', kind === 'User' ? name : `system:serviceaccount:${namespace}:${name}`];
};

export default function WhatCanPage() {
  const [bearer, setBearer] = useState<Bearer>({ kind: 'User', namespace: '', name: '' });
  const [found, setFound] = useState<readonly Grant[]>();
  const change = (part: Partial<Bearer>): void => {
    setBearer({ ...bearer, ...part });
    setFound(undefined);
  };
  useCommand(kubectl('auth', 'can-i', '--list', ...asUser(bearer)));
  const isComplete = bearer.name !== '' && (bearer.kind !== 'ServiceAccount' || bearer.namespace !== '');
  return (
    <>
      <h1>What can</h1>
      <form class="form" onSubmit={(event) => event.preventDefault()}>
        <label>
          Kind
          <select
            value={bearer.kind}
            onChange={({ currentTarget }) => {
              const [kind = 'User'] = KINDS.find(([each]) => each === currentTarget.value) ?? [];
              change({ kind, ...(kind === 'ServiceAccount' ? {} : { namespace: '' }) });
            }}
          >
            {KINDS.map(([kind, label]) => (
              <option key={kind} value={kind}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {bearer.kind === 'ServiceAccount' ? (
          <label>
            Namespace
            <input
              value={bearer.namespace}
              onInput={({ currentTarget }) => change({ namespace: currentTarget.value.trim() })}
            />
          </label>
        ) : null}
        <label>
          Name
          <input value={bearer.name} onInput={({ currentTarget }) => change({ name: currentTarget.value.trim() })} />
        </label>
        <Action
          isDefault
          label="Find"
          question={READ_BINDINGS}
          {...(isComplete ? {} : { disabled: 'Enter the name first.' })}
          run={async () => {
            const [objects, memberships] = await Promise.all([readRbac(api), readMemberships(api)]);
            setFound(whatCan(bearer, objects, memberships));
          }}
        />
      </form>
      {found === undefined ? null : (
        <DataTable
          label="Permissions"
          columns={COLUMNS}
          items={found}
          keyOf={({ namespace, binding, target, verbs }) => `${namespace} ${binding} ${target} ${verbs}`}
        />
      )}
    </>
  );
}
