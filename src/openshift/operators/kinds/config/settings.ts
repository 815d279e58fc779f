/**
 * Settings of config.openshift.io that this cluster supports. Any other field is rejected with its path, so that no
 * setting is accepted without having an effect. Updates may keep the fields that the stored object already has.
 */
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';

/**
 * Rule for a field. `honoured`: every value takes effect. `described`: the value describes the cluster, and only the
 * server sets it, when it creates the object. A list: only these values are allowed, because only they take effect.
 */
type Rule = 'honoured' | 'described' | readonly (string | boolean)[];

const BOOTSTRAP = 'the bootstrap file of the masters';

/**
 * Rules by kind and by field path below `spec`. The items of a list share the path of the list. A rule also applies to
 * the fields below its path.
 */
export const SETTINGS: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  APIServer: {
    'audit.profile': ['Default'],
    'encryption.type': ['identity'],
    'tlsSecurityProfile.type': ['Intermediate'],
    'tlsSecurityProfile.intermediate': 'honoured',
  },
  Authentication: { type: ['IntegratedOAuth'] },
  Build: {},
  ClusterOperator: {},
  ClusterVersion: {
    clusterID: 'honoured',
    channel: 'honoured',
    desiredUpdate: 'honoured',
  },
  Console: {},
  DNS: { baseDomain: 'described' },
  FeatureGate: {},
  Image: {},
  Infrastructure: { 'platformSpec.type': 'described' },
  Ingress: { domain: 'described' },
  Network: { clusterNetwork: 'described', serviceNetwork: 'described', networkType: 'described' },
  OAuth: {
    'identityProviders.name': 'honoured',
    'identityProviders.mappingMethod': 'honoured',
    'identityProviders.type': ['HTPasswd', 'LDAP', 'OpenID', 'RequestHeader'],
    'identityProviders.htpasswd': 'honoured',
    'identityProviders.ldap': 'honoured',
    'identityProviders.openID': 'honoured',
    'identityProviders.requestHeader': 'honoured',
    'tokenConfig.accessTokenMaxAgeSeconds': 'honoured',
    'tokenConfig.accessTokenInactivityTimeout': 'honoured',
    'tokenConfig.accessTokenInactivityTimeoutSeconds': 'honoured',
  },
  OperatorHub: { disableAllDefaultSources: [true] },
  Project: { projectRequestMessage: 'honoured', projectRequestTemplate: 'honoured' },
  Proxy: {},
  Scheduler: { mastersSchedulable: 'honoured', profile: ['LowNodeUtilization'] },
};

/**
 * For settings that this cluster keeps in another place than config.openshift.io: the place, by kind and first field.
 * The text is the end of an error message.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'APIServer audit': 'auditConfig of master-config.yaml',
  'APIServer servingCerts': 'servingInfo.namedCertificates of master-config.yaml',
  'APIServer encryption': 'an EncryptionConfiguration (docs/encryption.md)',
  'Image registrySources': 'registries in the bootstrap files of the hosts (docs/images.md)',
  'Proxy httpProxy': 'proxy in the bootstrap files of the hosts (docs/proxy.md)',
  'Proxy httpsProxy': 'proxy in the bootstrap files of the hosts (docs/proxy.md)',
  'Proxy noProxy': 'proxy in the bootstrap files of the hosts (docs/proxy.md)',
  'Proxy trustedCA': 'proxy.trustedCA in the bootstrap files of the hosts (docs/proxy.md)',
  'Scheduler profile': 'a KubeSchedulerConfiguration (docs/scheduling.md)',
};

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === 'object' && Object.values(value).every(isEmpty));

/** Errors for fields of `spec` that would have no effect. Fields that are unchanged from `old` are accepted. */
export function validateSettings(kind: string, spec: unknown, old: unknown): FieldError[] {
  const rules = SETTINGS[kind];
  return rules === undefined ? [] : errorsAt({ kind, rules, isUpdate: old !== undefined }, spec ?? {}, old, 'spec', '');
}

interface Context {
  readonly kind: string;
  readonly rules: Readonly<Record<string, Rule>>;
  readonly isUpdate: boolean;
}

/** Errors for a value. `at` is its path with list indices for error messages, `path` the same path as in the rules. */
function errorsAt(context: Context, value: unknown, old: unknown, at: string, path: string): FieldError[] {
  const rule = Object.hasOwn(context.rules, path) ? context.rules[path] : undefined;
  if (rule === 'honoured' || semanticEqual(value, old)) return [];
  if (rule === 'described')
    return context.isUpdate
      ? [fieldError.forbidden(at, `describes the cluster and cannot be changed; see ${BOOTSTRAP}`)]
      : [];
  if (Array.isArray(rule)) {
    if (value === '' || value === undefined || value === null || rule.includes(value as string)) return [];
    return [withPlace(context, path, fieldError.notSupported(at, value as string, rule.map(String)))];
  }
  if (isEmpty(value)) return [];
  const isParent = path === '' || Object.keys(context.rules).some((each) => each.startsWith(`${path}.`));
  if (isParent && Array.isArray(value)) {
    const before = Array.isArray(old) ? old : [];
    return value.flatMap((item, index) => errorsAt(context, item, before[index], `${at}[${index}]`, path));
  }
  if (isParent && typeof value === 'object' && value !== null) {
    const before = (typeof old === 'object' && old !== null ? old : {}) as Record<string, unknown>;
    return Object.entries(value).flatMap(([key, each]) =>
      errorsAt(context, each, before[key], `${at}.${key}`, path === '' ? key : `${path}.${key}`),
    );
  }
  return [withPlace(context, path, fieldError.forbidden(at, 'is not supported by this cluster'))];
}

function withPlace({ kind }: Context, path: string, error: FieldError): FieldError {
  const place = ELSEWHERE[`${kind} ${path.split('.')[0]}`];
  return place === undefined ? error : { ...error, message: `${error.message}; use ${place}` };
}
