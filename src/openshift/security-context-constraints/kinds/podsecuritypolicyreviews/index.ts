/**
 * Reviews of pods against security context constraints. The API server returns the result and never stores a review.
 * Source: openshift/api security/v1, openshift/openshift-apiserver pkg/security/apis/security/validation.
 */
import type { ObjectReference, PodTemplateSpec } from '../../../../api/generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { setPodTemplateDefaults } from '../../../../api/podspec/defaults.ts';
import { validatePodTemplate } from '../../../../api/podspec/validate.ts';
import type { KindDefinition, WriteStrategy } from '../../../../api/registry/definition.ts';
import { dns1123SubdomainErrors } from '../../../../base/names.ts';

export interface SubjectReviewStatus {
  allowedBy?: ObjectReference;
  reason?: string;
  template?: PodTemplateSpec;
}

interface Review extends KubeObject {
  spec?: { template?: PodTemplateSpec };
}

export interface PodSecurityPolicySubjectReview extends Review {
  spec?: { template?: PodTemplateSpec; user?: string; groups?: string[] };
  status?: SubjectReviewStatus;
}

export interface PodSecurityPolicySelfSubjectReview extends Review {
  status?: SubjectReviewStatus;
}

export interface PodSecurityPolicyReview extends Review {
  spec?: { template?: PodTemplateSpec; serviceAccountNames?: string[] };
  status?: { allowedServiceAccounts?: ({ name: string } & SubjectReviewStatus)[] };
}

function review<T extends Review>(kind: string, validate: WriteStrategy<T>['validate']): KindDefinition<T> {
  const singular = kind.toLowerCase();
  return {
    group: 'security.openshift.io',
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: true,
    verbs: ['create'],
    schemaName: `com.github.openshift.api.security.v1.${kind}`,
    storagePrefix: '',
    isComputed: true,
    setDefaults(object) {
      if (object.spec?.template !== undefined) setPodTemplateDefaults(object.spec.template);
    },
    strategy: validate === undefined ? {} : { validate },
    columns: [],
  };
}

function templateErrors({ spec }: Review): FieldError[] {
  return spec?.template === undefined
    ? [fieldError.required('spec.template')]
    : validatePodTemplate(spec.template, 'spec.template');
}

export const podSecurityPolicySubjectReviews = review<PodSecurityPolicySubjectReview>(
  'PodSecurityPolicySubjectReview',
  (object) => {
    const { user = '', groups = [], template } = object.spec ?? {};
    const isRequested = user !== '' || groups.length > 0 || isSet(template?.spec?.serviceAccountName);
    const detail = 'at least one of user, groups or serviceAccountName must be specified';
    return [...templateErrors(object), ...(isRequested ? [] : [fieldError.invalid('spec', '', detail)])];
  },
);

export const podSecurityPolicySelfSubjectReviews = review<PodSecurityPolicySelfSubjectReview>(
  'PodSecurityPolicySelfSubjectReview',
  templateErrors,
);

export const podSecurityPolicyReviews = review<PodSecurityPolicyReview>('PodSecurityPolicyReview', (object) => [
  ...templateErrors(object),
  ...(object.spec?.serviceAccountNames ?? []).flatMap((name, index) =>
    dns1123SubdomainErrors(name).map((detail) =>
      fieldError.invalid(`spec.serviceAccountNames[${index}]`, name, detail),
    ),
  ),
]);
