/**
 * OpenShift's access reviews. They are answered and never stored. Source: openshift/openshift-apiserver
 * pkg/authorization/apis/authorization/validation.
 */
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { isSet } from '../../../meta/validation.ts';
import type { KindDefinition } from '../../../registry/definition.ts';

/** Action to authorize. The fields are at the top level of the review, not below `spec`. */
export interface ReviewAction extends KubeObject {
  namespace?: string;
  verb?: string;
  resourceAPIGroup?: string;
  resourceAPIVersion?: string;
  resource?: string;
  resourceName?: string;
  path?: string;
  isNonResourceURL?: boolean;
}

export interface ReviewSubject {
  user?: string;
  groups?: string[];
  scopes?: string[] | null;
}

export type SubjectReview = ReviewAction & ReviewSubject;

export interface RulesReview extends KubeObject {
  spec?: ReviewSubject;
}

function validateAction({ verb, resource, path, isNonResourceURL }: ReviewAction): FieldError[] {
  const errors = isSet(verb) ? [] : [fieldError.required('verb')];
  if (isNonResourceURL === true) return isSet(path) ? errors : [...errors, fieldError.required('path')];
  return isSet(resource) ? errors : [...errors, fieldError.required('resource')];
}

function review<T extends KubeObject>(
  kind: string,
  scope: 'Namespaced' | 'Cluster',
  validate?: (object: T) => FieldError[],
): KindDefinition<T> {
  const singular = kind.toLowerCase();
  return {
    group: 'authorization.openshift.io',
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: scope === 'Namespaced',
    verbs: ['create'],
    schemaName: `com.github.openshift.api.authorization.v1.${kind}`,
    storagePrefix: '',
    isComputed: true,
    strategy: validate === undefined ? {} : { validate },
    columns: [],
  };
}

export const openshiftReviews: readonly KindDefinition[] = [
  review<ReviewAction>('LocalResourceAccessReview', 'Namespaced', validateAction),
  review<SubjectReview>('LocalSubjectAccessReview', 'Namespaced', validateAction),
  review<ReviewAction>('ResourceAccessReview', 'Cluster', validateAction),
  review<RulesReview>('SelfSubjectRulesReview', 'Namespaced'),
  review<SubjectReview>('SubjectAccessReview', 'Cluster', validateAction),
  review<RulesReview>('SubjectRulesReview', 'Namespaced', ({ spec = {} }) =>
    isSet(spec.user) || (spec.groups ?? []).length > 0
      ? []
      : [fieldError.required('spec', 'at least one of user or groups must be specified')],
  ),
];
