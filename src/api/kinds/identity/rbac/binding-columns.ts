/** Table columns of role bindings and cluster role bindings. */
import type { ClusterRoleBinding, RoleBinding } from '../../../generated/rbac/v1.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { Column } from '../../../registry/definition.ts';
import { subjectsText } from './rules.ts';

type Binding = RoleBinding | ClusterRoleBinding;

const wide = { wide: true };

export const bindingColumns: readonly Column<Binding>[] = [
  nameColumn,
  column<Binding>(
    'Role',
    'The role that is bound.',
    (each) => `${each.roleRef?.kind ?? ''}/${each.roleRef?.name ?? ''}`,
  ),
  ageColumn,
  column<Binding>('Users', 'Users in the binding.', (each) => subjectsText(each, 'User'), wide),
  column<Binding>('Groups', 'Groups in the binding.', (each) => subjectsText(each, 'Group'), wide),
  column<Binding>(
    'ServiceAccounts',
    'Service accounts in the binding.',
    (each) => subjectsText(each, 'ServiceAccount'),
    wide,
  ),
];
