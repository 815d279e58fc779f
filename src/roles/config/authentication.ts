/** Upstream's AuthenticationConfiguration file: issuers of ID tokens, and who is let in without any. Source: apiserver.config.k8s.io/v1. */
import { CodedError } from '../../base/errors.ts';
import { type ClaimMapping, SIGNING_ALGORITHMS, type TokenIssuer } from '../../components/apiserver/index.ts';
import { boolean, checkedString, type Field, list, object, oneOf, parseConfig, string } from './strict-yaml.ts';

const https = (): Field<string> => string({ pattern: /^https:\/\/[^?#]+$/, mend: 'give an https:// address' });

/** Expressions are refused rather than passed over: they would narrow whom a token lets in. */
const mapping = () => object({ claim: string(), prefix: string() }, ['claim', 'prefix']);

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
            { username: mapping(), groups: mapping(), uid: object({ claim: string() }, ['claim']) },
            ['username'],
          ),
          claimValidationRules: list(object({ claim: string(), requiredValue: string() }, ['claim', 'requiredValue'])),
        },
        ['issuer', 'claimMappings'],
      ),
    ),
  },
  ['apiVersion', 'kind'],
);

export interface AuthenticationFile {
  readonly issuers: readonly TokenIssuer[];
  /** Undefined: the file says nothing of it. Paths, where only some are open. */
  readonly anonymous: { readonly enabled: boolean; readonly paths?: readonly string[] } | undefined;
}

/** Throws CodedError 'bad-config' naming file, line and field. */
export function parseAuthentication(text: string, file: string): AuthenticationFile {
  const { jwt = [], anonymous } = parseConfig(text, file, field);
  const seen = new Set<string>();
  const issuers = jwt.map(({ issuer, claimMappings, claimValidationRules }, index): TokenIssuer => {
    const refuse = (what: string): never => {
      throw new CodedError('bad-config', `${file}: jwt[${index}].${what}`);
    };
    if (seen.has(issuer.url)) refuse('issuer.url: given twice; write one entry for an issuer');
    seen.add(issuer.url);
    if (issuer.audiences.length === 0) refuse('issuer.audiences: is empty; name at least one');
    if (issuer.audiences.length > 1 && issuer.audienceMatchPolicy === undefined)
      refuse('issuer.audienceMatchPolicy: is missing; give MatchAny for several audiences');
    const groups: ClaimMapping | undefined = claimMappings.groups;
    return {
      url: issuer.url,
      ...(issuer.discoveryURL === undefined ? {} : { discoveryUrl: issuer.discoveryURL }),
      ...(issuer.certificateAuthority === undefined ? {} : { ca: issuer.certificateAuthority }),
      audiences: issuer.audiences,
      algorithms: SIGNING_ALGORITHMS,
      username: claimMappings.username,
      ...(groups === undefined ? {} : { groups }),
      ...(claimMappings.uid === undefined ? {} : { uidClaim: claimMappings.uid.claim }),
      requiredClaims: new Map((claimValidationRules ?? []).map(({ claim, requiredValue }) => [claim, requiredValue])),
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
