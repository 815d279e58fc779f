/** Validation of OAuth clients and tokens. Source: openshift/oauth-apiserver pkg/oauth/apis/oauth/validation. */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import type { OAuthAccessToken, OAuthAuthorizeToken, OAuthClient, OAuthClientAuthorization } from './types.ts';

/** Pattern of token names: `sha256~` and the hash in base64url without padding. */
const TOKEN_NAME = /^sha256~[A-Za-z0-9_-]{43}$/;
const MIN_INACTIVITY_SECONDS = 300;
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
const KNOWN_SCOPE =
  /^(?:user:(?:full|info|check-access|list-projects|list-scoped-projects)|role:[^:]+(?::[^:]+)*:[^:!]+(?::!)?)$/;

export function validateClient(client: OAuthClient): FieldError[] {
  const { grantMethod = '', redirectURIs = [], accessTokenMaxAgeSeconds, accessTokenInactivityTimeoutSeconds } = client;
  const errors = redirectURIs.flatMap((each, index) => redirectProblems(`redirectURIs[${index}]`, each));
  if (grantMethod === '') errors.push(fieldError.required('grantMethod', ''));
  else if (grantMethod !== 'auto' && grantMethod !== 'prompt')
    errors.push(fieldError.notSupported('grantMethod', grantMethod, ['auto', 'prompt']));
  if ((accessTokenMaxAgeSeconds ?? 0) < 0)
    errors.push(fieldError.invalid('accessTokenMaxAgeSeconds', accessTokenMaxAgeSeconds ?? 0, 'must be at least 0'));
  const idle = accessTokenInactivityTimeoutSeconds ?? 0;
  if (idle !== 0 && idle < MIN_INACTIVITY_SECONDS) {
    const detail = `The minimum valid timeout value is ${MIN_INACTIVITY_SECONDS} seconds`;
    errors.push(fieldError.invalid('accessTokenInactivityTimeoutSeconds', idle, detail));
  }
  return errors;
}

function redirectProblems(path: string, uri: string): FieldError[] {
  if (!URL.canParse(uri) || uri.includes('#') || /\s/.test(uri))
    return [fieldError.invalid(path, uri, 'must be an absolute URL without a fragment')];
  return [];
}

export function validateAccessToken(token: OAuthAccessToken): FieldError[] {
  return [
    ...issuedProblems(token),
    ...(isSet(token.authorizeToken) && !TOKEN_NAME.test(token.authorizeToken)
      ? [fieldError.invalid('authorizeToken', '<redacted>', 'must have the prefix sha256~ and be a hash')]
      : []),
  ];
}

export const validateAuthorizeToken = (token: OAuthAuthorizeToken): FieldError[] => issuedProblems(token);

function issuedProblems(token: OAuthAccessToken | OAuthAuthorizeToken): FieldError[] {
  const errors: FieldError[] = [];
  // The error does not repeat an invalid name, because the name may be the secret token itself.
  if (!TOKEN_NAME.test(token.metadata?.name ?? ''))
    errors.push(fieldError.invalid('metadata.name', '<redacted>', 'must have the prefix sha256~ and be a hash'));
  for (const field of ['clientName', 'userName', 'userUID'] as const)
    if (!isSet(token[field])) errors.push(fieldError.required(field, ''));
  return [...errors, ...scopeProblems(token.scopes)];
}

/** Validates an update of a token: all properties are immutable, except that inactivityTimeoutSeconds may increase. */
export function validateTokenUpdate(token: OAuthAccessToken, old: OAuthAccessToken): FieldError[] {
  const fields = ['clientName', 'userName', 'userUID', 'expiresIn', 'authorizeToken'] as const;
  const errors = fields.flatMap((field) =>
    token[field] === old[field] ? [] : [fieldError.invalid(field, '<redacted>', 'field is immutable')],
  );
  if (JSON.stringify(token.scopes ?? []) !== JSON.stringify(old.scopes ?? []))
    errors.push(fieldError.invalid('scopes', '<redacted>', 'field is immutable'));
  return errors;
}

export function validateAuthorization(authorization: OAuthClientAuthorization): FieldError[] {
  const { metadata, clientName = '', userName = '', userUID, scopes } = authorization;
  const errors: FieldError[] = [];
  const wanted = `${userName}:${clientName}`;
  if (metadata?.name !== wanted)
    errors.push(
      fieldError.invalid(
        'metadata.name',
        metadata?.name ?? '',
        `must be in the format <userName>:<clientName> (${wanted})`,
      ),
    );
  if (clientName === '') errors.push(fieldError.required('clientName', ''));
  if (userName === '') errors.push(fieldError.required('userName', ''));
  if (!isSet(userUID)) errors.push(fieldError.required('userUID', ''));
  return [...errors, ...scopeProblems(scopes)];
}

/**
 * Whether the scope has a valid syntax and a known form. Source: RFC 6749, appendix A.4; openshift/apiserver-library-go
 * pkg/authorization/scope.
 */
export const isScope = (scope: string): boolean => SCOPE.test(scope) && KNOWN_SCOPE.test(scope);

function scopeProblems(scopes: readonly string[] | undefined): FieldError[] {
  if (scopes === undefined || scopes.length === 0) return [fieldError.required('scopes', '')];
  return scopes.flatMap((each, index) =>
    isScope(each) ? [] : [fieldError.invalid(`scopes[${index}]`, each, 'no scope handler found')],
  );
}
