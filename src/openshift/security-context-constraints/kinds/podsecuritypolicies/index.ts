/**
 * Pod security policies. They are stored and displayed so that old charts and scripts work, but they have no effect.
 * Upstream removed the kind in 1.25. Source: k8s.io/kubernetes/pkg/registry/policy/podsecuritypolicy of the last
 * release with this kind.
 */
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import type { PodSecurityPolicy } from './types.ts';
import { validatePolicy } from './validation.ts';

const UNENFORCED =
  'pod security policies are kept and not enforced: label namespaces with pod-security.kubernetes.io/enforce instead';

const shown = (name: string, description: string, read: (spec: NonNullable<PodSecurityPolicy['spec']>) => string) =>
  column<PodSecurityPolicy>(name, description, ({ spec = {} }) => read(spec));

export const podSecurityPolicies: KindDefinition<PodSecurityPolicy> = {
  group: 'policy',
  version: 'v1beta1',
  kind: 'PodSecurityPolicy',
  plural: 'podsecuritypolicies',
  singular: 'podsecuritypolicy',
  listKind: 'PodSecurityPolicyList',
  namespaced: false,
  shortNames: ['psp'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.policy.v1beta1.PodSecurityPolicy',
  skeleton: { spec: { seLinux: {}, runAsUser: {}, supplementalGroups: {}, fsGroup: {} } },
  storagePrefix: 'podsecuritypolicy',
  deprecated: { since: '1.21', removed: '1.25' },
  setDefaults({ spec }) {
    if (spec !== undefined) spec.allowPrivilegeEscalation ??= true;
  },
  strategy: {
    validate: validatePolicy,
    warnings: () => [UNENFORCED],
  },
  columns: [
    nameColumn,
    shown('Priv', 'Whether containers may be privileged.', (spec) => String(spec.privileged ?? false)),
    shown('Caps', 'Capabilities that may be added.', (spec) => (spec.allowedCapabilities ?? []).join(',')),
    shown('SELinux', 'How labels of SELinux are chosen.', (spec) => spec.seLinux?.rule ?? ''),
    shown('RunAsUser', 'How users are chosen.', (spec) => spec.runAsUser?.rule ?? ''),
    shown('FsGroup', 'How groups of volumes are chosen.', (spec) => spec.fsGroup?.rule ?? ''),
    shown('SupGroup', 'How further groups are chosen.', (spec) => spec.supplementalGroups?.rule ?? ''),
    column<PodSecurityPolicy>(
      'ReadOnlyRootFs',
      'Whether root file systems must be read-only.',
      ({ spec }) => spec?.readOnlyRootFilesystem ?? false,
    ),
    shown('Volumes', 'Kinds of volumes that pods may have.', (spec) => (spec.volumes ?? []).join(',')),
  ],
};
