/** Service accounts. Source: k8s.io/kubernetes/pkg/registry/core/serviceaccount. */
import type { ServiceAccount } from '../../../generated/core/v1.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';

const MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';

export const serviceAccounts: KindDefinition<ServiceAccount> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  listKind: 'ServiceAccountList',
  namespaced: true,
  shortNames: ['sa'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.ServiceAccount',
  returnsDeleted: true,
  storagePrefix: 'serviceaccounts',
  strategy: {
    warnings: ({ metadata }, old) =>
      metadata?.annotations?.[MOUNTABLE_SECRETS] !== undefined &&
      old?.metadata?.annotations?.[MOUNTABLE_SECRETS] === undefined
        ? [
            `metadata.annotations[${MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
          ]
        : [],
  },
  columns: [
    nameColumn,
    column<ServiceAccount>('Secrets', 'Number of secrets of the account.', (account) => account.secrets?.length ?? 0),
    ageColumn,
  ],
  extraSubresources: [
    { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
  ],
};
