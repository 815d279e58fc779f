import { useState } from 'preact/hooks';
import { readRbac, type WhoCan, type WhoCanQuestion, whoCan } from '../../data/api/who-can.ts';
import { kubectl } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Action } from '../../ui/parts.tsx';

const COLUMNS: readonly Column<WhoCan>[] = [
  { name: 'Subject', text: ({ subject }) => subject },
  { name: 'Role', text: ({ role }) => role },
  { name: 'Binding', text: ({ binding }) => binding },
];

const FIELDS = [
  ['verb', 'Verb'],
  ['resource', 'Resource (plural)'],
  ['group', 'API group (empty: core)'],
  ['namespace', 'Namespace (empty: the whole cluster)'],
] as const;

export default function WhoCanPage() {
  const [question, setQuestion] = useState<WhoCanQuestion>({
    verb: 'delete',
    resource: 'pods',
    group: '',
    namespace: '',
  });
  const [found, setFound] = useState<readonly WhoCan[]>();
  useCommand(kubectl('get', 'clusterrolebindings,rolebindings', '-A', '-o', 'wide'));
  return (
    <>
      <h1>Who can</h1>
      <form class="form" onSubmit={(event) => event.preventDefault()}>
        {FIELDS.map(([field, label]) => (
          <label key={field}>
            {label}
            <input
              value={question[field]}
              onInput={({ currentTarget }) => setQuestion({ ...question, [field]: currentTarget.value.trim() })}
            />
          </label>
        ))}
        <Action
          isDefault
          label="Find"
          question={{ verb: 'list', group: 'rbac.authorization.k8s.io', resource: 'clusterrolebindings' }}
          run={async () => setFound(whoCan(question, await readRbac(api)))}
        />
      </form>
      {found === undefined ? null : (
        <DataTable
          label="Subjects"
          columns={COLUMNS}
          items={found}
          keyOf={({ subject, binding, role }) => `${subject} ${binding} ${role}`}
        />
      )}
    </>
  );
}
