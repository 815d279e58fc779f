/**
 * Token and access reviews. They are answered and never stored. Source:
 * k8s.io/kubernetes/pkg/registry/{authentication,authorization}, pkg/apis/authorization/validation.
 */
import type { SelfSubjectReview, TokenReview } from '../../../generated/authentication/v1.ts';
import type {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from '../../../generated/authorization/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { isSet } from '../../../meta/validation.ts';
import type { KindAlias, KindDefinition, WriteStrategy } from '../../../registry/definition.ts';
import { sameShape } from '../../../registry/versions.ts';
import { type SelectingAttributes, selectorErrors } from './selectors.ts';

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

/** Alias for v1beta1, in which two kinds have a differently named field. */
function olderReview<T extends KubeObject>(group: string, kind: string): KindAlias<T> {
  const since = kind === 'SelfSubjectReview' ? '1.28' : '1.19';
  const removed = kind === 'SelfSubjectReview' ? '1.31' : '1.22';
  if (kind !== 'SubjectAccessReview' && kind !== 'LocalSubjectAccessReview') {
    return sameShape(group, 'v1beta1', since, removed);
  }
  const renamed = (object: KubeObject, from: string, to: string): KubeObject => {
    const { spec } = object as { spec?: object };
    if (spec === undefined) return object;
    const entries = Object.entries(spec).map(([field, value]) => [field === from ? to : field, value]);
    return { ...object, spec: Object.fromEntries(entries) } as KubeObject;
  };
  return {
    group,
    version: 'v1beta1',
    deprecated: { since, removed },
    convertTo: (object) => renamed(object, 'group', 'groups') as T,
    convertFrom: (object) => renamed(object, 'groups', 'group'),
  };
}

function review<T extends KubeObject>(
  group: string,
  kind: string,
  validate?: WriteStrategy<T>['validate'],
  scope: 'Namespaced' | 'Cluster' = 'Cluster',
): KindDefinition<T> {
  const singular = kind.toLowerCase();
  return {
    group,
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: scope === 'Namespaced',
    verbs: ['create'],
    schemaName: `io.k8s.api.${group.slice(0, group.indexOf('.'))}.v1.${kind}`,
    storagePrefix: '',
    isComputed: true,
    aliases: [olderReview(group, kind)],
    strategy: validate === undefined ? {} : { validate },
    columns: [],
  };
}

type AccessSpec = Pick<SubjectAccessReview['spec'], 'resourceAttributes' | 'nonResourceAttributes'>;

function validateAttributes(spec: AccessSpec | undefined): FieldError[] {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec ?? {};
  const errors: FieldError[] = [];
  if (resource !== undefined && path !== undefined)
    errors.push(
      fieldError.invalid(
        'spec.nonResourceAttributes',
        path,
        'cannot be specified in combination with resourceAttributes',
      ),
    );
  if (resource === undefined && path === undefined)
    errors.push(
      fieldError.invalid(
        'spec.resourceAttributes',
        null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    );
  return resource === undefined
    ? errors
    : [...errors, ...selectorErrors(resource as SelectingAttributes, 'spec.resourceAttributes')];
}

/** Rejects metadata, because reviews have none. `but`: a field that is allowed. */
function validateEmpty({ metadata = {} }: KubeObject, but?: 'namespace'): FieldError[] {
  const present = Object.entries(metadata).filter(
    ([name, value]) => name !== 'managedFields' && name !== but && !isNothing(value),
  );
  if (present.length === 0) return [];
  const detail = but === undefined ? 'must be empty' : `must be empty except for ${but}`;
  return [fieldError.invalid('metadata', Object.fromEntries(present), detail)];
}

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value as object).length === 0);

function validateSubject(spec: SubjectAccessReview['spec'] | undefined): FieldError[] {
  return isSet(spec?.user) || (spec?.groups ?? []).length > 0
    ? []
    : [fieldError.invalid('spec.user', '', 'at least one of user or group must be specified')];
}

function validateLocal(object: LocalSubjectAccessReview): FieldError[] {
  const errors = [...validateAttributes(object.spec), ...validateSubject(object.spec)];
  const requested = object.spec?.resourceAttributes;
  if (requested !== undefined && (requested.namespace ?? '') !== (object.metadata?.namespace ?? '')) {
    errors.push(
      fieldError.invalid(
        'spec.resourceAttributes.namespace',
        requested.namespace ?? '',
        'must match metadata.namespace',
      ),
    );
  }
  if (object.spec?.nonResourceAttributes !== undefined) {
    errors.push(
      fieldError.invalid(
        'spec.nonResourceAttributes',
        object.spec.nonResourceAttributes,
        'disallowed on this kind of request',
      ),
    );
  }
  return [...errors, ...validateEmpty(object, 'namespace')];
}

export const tokenReviews = review<TokenReview>(AUTHENTICATION, 'TokenReview');
export const selfSubjectReviews = review<SelfSubjectReview>(AUTHENTICATION, 'SelfSubjectReview');
export const subjectAccessReviews = review<SubjectAccessReview>(AUTHORIZATION, 'SubjectAccessReview', (object) => [
  ...validateAttributes(object.spec),
  ...validateSubject(object.spec),
  ...validateEmpty(object),
]);
export const localSubjectAccessReviews = review<LocalSubjectAccessReview>(
  AUTHORIZATION,
  'LocalSubjectAccessReview',
  validateLocal,
  'Namespaced',
);
export const selfSubjectAccessReviews = review<SelfSubjectAccessReview>(
  AUTHORIZATION,
  'SelfSubjectAccessReview',
  (object) => [...validateAttributes(object.spec), ...validateEmpty(object)],
);
export const selfSubjectRulesReviews = review<SelfSubjectRulesReview>(AUTHORIZATION, 'SelfSubjectRulesReview');
