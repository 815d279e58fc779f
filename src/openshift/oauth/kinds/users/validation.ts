/** Validation of users, identities and groups. Source: openshift/oauth-apiserver pkg/user/apis/user/validation. */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import type { Group, Identity, User, UserIdentityMapping } from './types.ts';

/** Problem with a user or group name, which is used in role bindings and URL paths. `~` stands for the calling user. */
function nameProblem(name: string): string | undefined {
  if (name === '~') return 'may not equal "~"';
  if (name.includes(':')) return 'may not contain ":"';
  if (/\p{Cc}/u.test(name)) return 'may not contain control characters';
  return undefined;
}

const named = (path: string, name: string): FieldError[] => {
  const problem = nameProblem(name);
  return problem === undefined ? [] : [fieldError.invalid(path, name, problem)];
};

const identityProblems = (path: string, identity: string): FieldError[] =>
  /^[^:]+:[^:]+$/.test(identity)
    ? []
    : [fieldError.invalid(path, identity, 'must be in the format <providerName>:<providerUserName>')];

export function validateUser({ metadata, identities, groups }: User): FieldError[] {
  return [
    ...named('metadata.name', metadata?.name ?? ''),
    ...(identities ?? []).flatMap((each, index) => identityProblems(`identities[${index}]`, each)),
    ...(groups ?? []).flatMap((each, index) =>
      each === '' ? [fieldError.invalid(`groups[${index}]`, each, 'may not be empty')] : [],
    ),
  ];
}

export function validateIdentity({ metadata, providerName = '', providerUserName = '' }: Identity): FieldError[] {
  const part = (path: string, value: string): FieldError[] => {
    if (value === '') return [fieldError.required(path, '')];
    return value.includes(':') ? [fieldError.invalid(path, value, 'may not contain ":"')] : [];
  };
  const errors = [...part('providerName', providerName), ...part('providerUserName', providerUserName)];
  const wanted = `${providerName}:${providerUserName}`;
  if (errors.length === 0 && metadata?.name !== wanted)
    errors.push(
      fieldError.invalid(
        'metadata.name',
        metadata?.name ?? '',
        `must be <providerName>:<providerUserName> (${wanted})`,
      ),
    );
  return errors;
}

export function validateIdentityUpdate(identity: Identity, old: Identity): FieldError[] {
  return (['providerName', 'providerUserName'] as const).flatMap((field) =>
    identity[field] === old[field] ? [] : [fieldError.invalid(field, identity[field] ?? '', 'field is immutable')],
  );
}

export function validateGroup({ metadata, users }: Group): FieldError[] {
  return [
    ...named('metadata.name', metadata?.name ?? ''),
    ...(users ?? []).flatMap((each, index) =>
      each === '' ? [fieldError.invalid(`users[${index}]`, each, 'may not be empty')] : named(`users[${index}]`, each),
    ),
  ];
}

export function validateMapping({ identity, user }: UserIdentityMapping): FieldError[] {
  return [
    ...(isSet(identity?.name) ? [] : [fieldError.required('identity.name', '')]),
    ...(isSet(user?.name) ? [] : [fieldError.required('user.name', '')]),
  ];
}
