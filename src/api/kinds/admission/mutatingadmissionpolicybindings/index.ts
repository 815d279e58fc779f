/**
 * Bindings of mutating admission policies. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding.
 */
import { type Binding, bindingKind } from '../../../admission-rules/bindings.ts';
import { validateBindingBasics, validateMutatedOperations } from '../../../admission-rules/policies.ts';
import { otherVersion } from '../../../registry/versions.ts';

export const mutatingAdmissionPolicyBindings = bindingKind<Binding>(
  'Mutating',
  [otherVersion('admissionregistration.k8s.io', 'v1beta1'), otherVersion('admissionregistration.k8s.io', 'v1alpha1')],
  ({ spec }) => [
    ...validateBindingBasics(spec ?? {}),
    ...validateMutatedOperations(spec?.matchResources, 'spec.matchResources'),
  ],
);
