/** Section `openshift` of the bootstrap file and of the master's configuration file. */

import { boolean, type Field, object, oneOf, type Parsed, string } from '../../../wire/strict-yaml.ts';
import type { IdentityProvider } from '../index.ts';

const DNS_NAME = {
  pattern: /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
  fix: 'give a DNS domain such as apps.lab.example',
};

const PROVIDER_KINDS = ['htpasswd', 'ldap', 'openID', 'requestHeader'] as const;
const PROVIDER_FIELDS: readonly string[] = ['name', 'mappingMethod', 'type', ...PROVIDER_KINDS];

/**
 * Field like `spec.identityProviders` of the OAuth object `cluster`. It refers to files of the host instead of objects.
 */
const identityProvidersField = (): Field<readonly IdentityProvider[]> => ({
  schema: {
    type: 'array',
    items: {
      type: 'object',
      required: ['name'],
      properties: Object.fromEntries(PROVIDER_FIELDS.map((each) => [each, {}])),
    },
  },
  parse: (at) => {
    const value: unknown = at.node?.toJSON();
    if (!Array.isArray(value)) return at.fail('must be a list of identity providers');
    for (const [index, each] of value.entries()) {
      const provider = (typeof each === 'object' && each !== null ? each : {}) as Record<string, unknown>;
      const fail = (what: string): never => at.into(at.node, `${at.path}[${index}]`).fail(what);
      const { name } = provider;
      if (typeof name !== 'string' || !/^[^/%:\s]+$/.test(name))
        fail('name: must be a name without /, %, : and blanks');
      const unknown = Object.keys(provider).find((key) => !PROVIDER_FIELDS.includes(key));
      if (unknown !== undefined) fail(`${unknown}: unknown field; give one of ${PROVIDER_FIELDS.join(', ')}`);
      if (PROVIDER_KINDS.filter((key) => provider[key] !== undefined).length !== 1)
        fail(`must have exactly one of ${PROVIDER_KINDS.join(', ')}`);
    }
    return value as IdentityProvider[];
  },
});

export const PROFILES = ['kubernetes', 'okd'] as const;
export type Profile = (typeof PROFILES)[number];

/** Fields of the section `openshift` in both files. `domain` is the domain for routes without a host. */
export const openshiftField = () =>
  object({
    profile: oneOf(...PROFILES),
    domain: string({ ...DNS_NAME }),
    wildcardRoutes: boolean(),
    identityProviders: identityProvidersField(),
  });

type OpenShiftFile = Parsed<{ openshift: ReturnType<typeof openshiftField> }, 'openshift'>['openshift'];

export interface OpenShiftSettings {
  /** Profile of the cluster. With `okd`, security context constraints are enforced, and users may request projects. */
  readonly profile: Profile;
  /** Domain of routes. A route without a host gets the host NAME-NAMESPACE.DOMAIN. */
  readonly domain: string;
  /** Whether routes with `wildcardPolicy: Subdomain` are admitted. */
  readonly wildcardRoutes?: true;
  /** Identity providers that are used in addition to those of the OAuth object `cluster`. */
  readonly identityProviders?: readonly IdentityProvider[];
}

const DEFAULT_DOMAIN = 'apps.cluster.local';

/** Settings with defaults. `learnt`: profile of the cluster, which applies if the file does not set a profile. */
export const openshiftOf = (file: OpenShiftFile | undefined, learnt?: Profile): OpenShiftSettings => ({
  profile: file?.profile ?? learnt ?? 'kubernetes',
  domain: file?.domain ?? DEFAULT_DOMAIN,
  // The field is omitted if it has its default, because earlier releases reject fields that they do not know.
  ...(file?.wildcardRoutes === true ? { wildcardRoutes: true } : {}),
  ...(file?.identityProviders === undefined ? {} : { identityProviders: file.identityProviders }),
});
