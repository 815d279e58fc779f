/**
 * Parses upstream's AuthenticationConfiguration file: ID token issuers and anonymous access. Source:
 * apiserver.config.k8s.io/v1.
 */
import { CodedError, messageOf } from '../../base/errors.ts';
import { dns1123SubdomainErrors } from '../../base/names.ts';
import {
  boolean,
  checkedString,
  type Field,
  list,
  object,
  oneOf,
  parseConfig,
  string,
} from '../../wire/strict-yaml.ts';
import {
  type ClaimExpression,
  type ClaimMapping,
  type ClaimPurpose,
  compileClaimExpression,
  SIGNING_ALGORITHMS,
  type TokenIssuer,
} from '../index.ts';

const https = (): Field<string> => string({ pattern: /^https:\/\/[^?#]+$/, fix: 'give an https:// address' });

/** A claim with its prefix, or an expression. */
const mapping = () => object({ claim: string(), prefix: string(), expression: string() });
const rule = { expression: string(), message: string() };

const field = object(
  {
    apiVersion: oneOf(
      'apiserver.config.k8s.io/v1',
      'apiserver.config.k8s.io/v1beta1',
      'apiserver.config.k8s.io/v1alpha1',
    ),
    kind: oneOf('AuthenticationConfiguration'),
    anonymous: object({
      enabled: boolean(),
      conditions: list(
        object({ path: checkedString((path) => (path.startsWith('/') ? undefined : 'give a path such as /healthz')) }, [
          'path',
        ]),
      ),
    }),
    jwt: list(
      object(
        {
          issuer: object(
            {
              url: https(),
              discoveryURL: https(),
              certificateAuthority: string(),
              audiences: list(string()),
              audienceMatchPolicy: oneOf('MatchAny'),
            },
            ['url', 'audiences'],
          ),
          claimMappings: object(
            {
              username: mapping(),
              groups: mapping(),
              uid: object({ claim: string(), expression: string() }),
              extra: list(object({ key: string(), valueExpression: string() }, ['key', 'valueExpression'])),
            },
            ['username'],
          ),
          claimValidationRules: list(object({ claim: string(), requiredValue: string(), ...rule })),
          userValidationRules: list(object(rule, ['expression'])),
        },
        ['issuer', 'claimMappings'],
      ),
    ),
  },
  ['apiVersion', 'kind'],
);

export interface AuthenticationFile {
  readonly issuers: readonly TokenIssuer[];
  /**
   * Anonymous access. Undefined if the file does not set it. With `paths`, only these paths admit anonymous requests.
   */
  readonly anonymous: { readonly enabled: boolean; readonly paths?: readonly string[] } | undefined;
}

type Written = NonNullable<ReturnType<typeof field.parse>['jwt']>[number];
type Refuse = (what: string) => never;

/** Parses the file. Throws CodedError 'bad-config' with file, line or entry, and field. */
export function parseAuthentication(text: string, file: string): AuthenticationFile {
  const { jwt = [], anonymous } = parseConfig(text, file, field);
  const seen = new Set<string>();
  const issuers = jwt.map((written, index): TokenIssuer => {
    const { issuer } = written;
    const refuse: Refuse = (what) => {
      throw new CodedError('bad-config', `${file}: jwt[${index}].${what}`);
    };
    if (seen.has(issuer.url)) refuse('issuer.url: given twice; write one entry for an issuer');
    seen.add(issuer.url);
    if (issuer.audiences.length === 0) refuse('issuer.audiences: is empty; name at least one');
    if (issuer.audiences.length > 1 && issuer.audienceMatchPolicy === undefined)
      refuse('issuer.audienceMatchPolicy: is missing; give MatchAny for several audiences');
    return {
      url: issuer.url,
      ...(issuer.discoveryURL === undefined ? {} : { discoveryUrl: issuer.discoveryURL }),
      ...(issuer.certificateAuthority === undefined ? {} : { ca: issuer.certificateAuthority }),
      audiences: issuer.audiences,
      algorithms: SIGNING_ALGORITHMS,
      ...claimRulesOf(written, refuse),
    };
  });
  return {
    issuers,
    anonymous:
      anonymous === undefined
        ? undefined
        : {
            enabled: anonymous.enabled === true,
            ...(anonymous.conditions === undefined ? {} : { paths: anonymous.conditions.map(({ path }) => path) }),
          },
  };
}

type ClaimRules = Omit<TokenIssuer, 'url' | 'discoveryUrl' | 'ca' | 'audiences' | 'algorithms'>;

function claimRulesOf(
  { claimMappings, claimValidationRules = [], userValidationRules = [] }: Written,
  refuse: Refuse,
): ClaimRules {
  const { username, groups, uid, extra = [] } = claimMappings;
  const requiredClaims = new Map<string, string>();
  const claimRules: { expression: ClaimExpression; message: string }[] = [];
  for (const [index, { claim, requiredValue, expression, message }] of claimValidationRules.entries()) {
    const at = `claimValidationRules[${index}]`;
    if ((claim === undefined) === (expression === undefined)) refuse(`${at}: give either claim or expression`);
    if (claim !== undefined) {
      if (message !== undefined) refuse(`${at}.message: belongs to an expression; remove it`);
      if (requiredClaims.has(claim)) refuse(`${at}.claim: "${claim}" is given twice`);
      requiredClaims.set(claim, requiredValue ?? '');
    } else {
      if (requiredValue !== undefined) refuse(`${at}.requiredValue: belongs to a claim; remove it`);
      const compiled = compiledAt(`${at}.expression`, expression ?? '', 'rule', refuse);
      claimRules.push({ expression: compiled, message: message ?? '' });
    }
  }
  checkAddresses(
    username.expression,
    [...claimRules.map((each) => each.expression.source), ...extra.map((each) => each.valueExpression)],
    refuse,
  );
  return {
    username: mappingOf('claimMappings.username', username, 'text', refuse),
    ...(groups === undefined ? {} : { groups: mappingOf('claimMappings.groups', groups, 'texts', refuse) }),
    ...(uid === undefined ? {} : { uid: uidOf(uid, refuse) }),
    ...(extra.length === 0 ? {} : { extra: extraOf(extra, refuse) }),
    requiredClaims,
    claimRules,
    userRules: userValidationRules.map(({ expression, message }, index) => ({
      expression: compiledAt(`userValidationRules[${index}].expression`, expression, 'user rule', refuse),
      message: message ?? '',
    })),
  };
}

function compiledAt(at: string, source: string, purpose: ClaimPurpose, refuse: Refuse): ClaimExpression {
  try {
    return compileClaimExpression(source, purpose);
  } catch (error) {
    return refuse(`${at}: ${messageOf(error).split('\n', 1)[0] ?? ''}`);
  }
}

function mappingOf(
  at: string,
  { claim, prefix, expression }: Written['claimMappings']['username'],
  purpose: ClaimPurpose,
  refuse: Refuse,
): ClaimMapping | ClaimExpression {
  if ((claim === undefined) === (expression === undefined)) refuse(`${at}: give either claim or expression`);
  if (claim === undefined) {
    if (prefix !== undefined) refuse(`${at}.prefix: belongs to a claim; put it into the expression`);
    return compiledAt(`${at}.expression`, expression ?? '', purpose, refuse);
  }
  if (prefix === undefined) return refuse(`${at}.prefix: is missing; give "" for none`);
  return { claim, prefix };
}

function uidOf(
  { claim, expression }: NonNullable<Written['claimMappings']['uid']>,
  refuse: Refuse,
): { claim: string } | ClaimExpression {
  const at = 'claimMappings.uid';
  if ((claim === undefined) === (expression === undefined)) refuse(`${at}: give either claim or expression`);
  return claim === undefined ? compiledAt(`${at}.expression`, expression ?? '', 'text', refuse) : { claim };
}

const RESERVED = /(?:^|\.)(?:k8s|kubernetes)\.io$/;

function extraOf(
  extra: NonNullable<Written['claimMappings']['extra']>,
  refuse: Refuse,
): { key: string; value: ClaimExpression }[] {
  const keys = new Set<string>();
  return extra.map(({ key, valueExpression }, index) => {
    const at = `claimMappings.extra[${index}]`;
    const slash = key.indexOf('/');
    const domain = key.slice(0, slash);
    if (slash <= 0 || slash === key.length - 1 || dns1123SubdomainErrors(domain).length > 0) {
      refuse(`${at}.key: "${key}" is not a path below a domain; give one such as example.com/tenant`);
    }
    if (key !== key.toLowerCase()) refuse(`${at}.key: "${key}" is not in lower case`);
    if (RESERVED.test(domain)) refuse(`${at}.key: "${key}" is in a domain that is reserved for Kubernetes`);
    if (keys.has(key)) refuse(`${at}.key: "${key}" is given twice`);
    keys.add(key);
    return { key, value: compiledAt(`${at}.valueExpression`, valueExpression, 'texts', refuse) };
  });
}

/** Requires a check of `email_verified` if an e-mail claim becomes the user name. */
function checkAddresses(username: string | undefined, others: readonly string[], refuse: Refuse): void {
  if (username === undefined || !uses(username, 'email')) return;
  if ([username, ...others].some((source) => uses(source, 'email_verified'))) return;
  refuse(
    'claimMappings.username.expression: claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression',
  );
}

const uses = (source: string, claim: string): boolean =>
  new RegExp(`\\bclaims\\s*(?:\\.\\s*\\??\\s*${claim}\\b|\\[\\s*\\??\\s*["']${claim}["'])`).test(source);
