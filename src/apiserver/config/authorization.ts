/**
 * Parses upstream's AuthorizationConfiguration file: the ordered authorizers. Source: apiserver.config.k8s.io/v1,
 * KEP-3221.
 */

import { CodedError, messageOf } from '../../base/errors.ts';
import { dns1123SubdomainErrors } from '../../base/names.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { boolean, checkedString, list, object, oneOf, parseConfig, string } from '../../wire/strict-yaml.ts';
import type { Authorizer } from '../index.ts';
import { compileAccessConditions } from '../index.ts';

const MAX_TIMEOUT_MS = 30_000;
const AUTHORIZED_MS = 5 * 60_000;
const UNAUTHORIZED_MS = 30_000;
const MAX_CONDITIONS = 64;

const duration = (limitMs = Number.POSITIVE_INFINITY) =>
  checkedString((text) => {
    const ms = parseDuration(text);
    if (ms === undefined || ms <= 0) return 'give a duration such as 3s';
    return ms > limitMs ? `give ${limitMs / 1000}s at most` : undefined;
  });

/** Upstream rejects InClusterConfig in kube-apiserver, which would call itself. */
const connectionErrorOf = (type: string): string | undefined => {
  if (type === 'InClusterConfig') return 'InClusterConfig is not allowed for kube-apiserver; give KubeConfigFile';
  return type === 'KubeConfigFile' ? undefined : 'give KubeConfigFile';
};

const webhookField = object(
  {
    authorizedTTL: duration(),
    cacheAuthorizedRequests: boolean(),
    unauthorizedTTL: duration(),
    cacheUnauthorizedRequests: boolean(),
    timeout: duration(MAX_TIMEOUT_MS),
    subjectAccessReviewVersion: oneOf('v1', 'v1beta1'),
    matchConditionSubjectAccessReviewVersion: oneOf('v1'),
    failurePolicy: oneOf('NoOpinion', 'Deny'),
    connectionInfo: object(
      {
        type: checkedString(connectionErrorOf),
        kubeConfigFile: string(),
      },
      ['type', 'kubeConfigFile'],
    ),
    matchConditions: list(object({ expression: string() }, ['expression'])),
  },
  ['timeout', 'subjectAccessReviewVersion', 'failurePolicy', 'connectionInfo'],
);

const field = object(
  {
    apiVersion: oneOf(
      'apiserver.config.k8s.io/v1',
      'apiserver.config.k8s.io/v1beta1',
      'apiserver.config.k8s.io/v1alpha1',
    ),
    kind: oneOf('AuthorizationConfiguration'),
    authorizers: list(
      object(
        {
          type: oneOf('Node', 'RBAC', 'Webhook', 'AlwaysAllow', 'AlwaysDeny'),
          name: checkedString((name) => (dns1123SubdomainErrors(name).length === 0 ? undefined : 'give a DNS name')),
          webhook: webhookField,
        },
        ['type', 'name'],
      ),
    ),
  },
  ['apiVersion', 'kind', 'authorizers'],
);

type Endpoint = Extract<Authorizer, { type: 'Webhook' }>['webhook']['endpoint'];

/**
 * Parses the file. `readEndpoint` reads the kubeconfig of a webhook. Throws CodedError 'bad-config' with file, line or
 * entry, and field.
 */
export async function parseAuthorization(
  text: string,
  file: string,
  readEndpoint: (kubeconfig: string) => Promise<Endpoint>,
): Promise<readonly Authorizer[]> {
  const { authorizers } = parseConfig(text, file, field);
  const names = new Set<string>();
  const types = new Set<string>();
  const found: Authorizer[] = [];
  if (authorizers.length === 0)
    throw new CodedError('bad-config', `${file}: authorizers: is empty; name RBAC at least`);
  for (const [index, { type, name, webhook }] of authorizers.entries()) {
    const refuse = (what: string): never => {
      throw new CodedError('bad-config', `${file}: authorizers[${index}].${what}`);
    };
    if (names.has(name)) refuse(`name: "${name}" is given twice; names must be unique`);
    names.add(name);
    if (type !== 'Webhook') {
      if (webhook !== undefined) refuse(`webhook: is only allowed with type Webhook; remove the field`);
      if (types.has(type)) refuse(`type: ${type} is given twice; remove one`);
      types.add(type);
      found.push({ type, name });
      continue;
    }
    if (webhook === undefined) return refuse('webhook: is missing; configure the webhook of this authorizer');
    found.push({ type, name, webhook: await webhookOf(webhook, readEndpoint, refuse) });
  }
  return found;
}

type WrittenWebhook = ReturnType<typeof webhookField.parse>;

async function webhookOf(
  written: WrittenWebhook,
  readEndpoint: (kubeconfig: string) => Promise<Endpoint>,
  refuse: (what: string) => never,
): Promise<Extract<Authorizer, { type: 'Webhook' }>['webhook']> {
  const { matchConditions = [], cacheAuthorizedRequests, cacheUnauthorizedRequests } = written;
  const version = written.matchConditionSubjectAccessReviewVersion;
  if (matchConditions.length > MAX_CONDITIONS) {
    refuse(`webhook.matchConditions: there are ${matchConditions.length}; give ${MAX_CONDITIONS} at most`);
  }
  if (matchConditions.length > 0 && version === undefined) {
    refuse('webhook.matchConditionSubjectAccessReviewVersion: is required with matchConditions; give v1');
  }
  const sources = matchConditions.map(({ expression }) => expression);
  const twice = sources.findIndex((source, index) => sources.indexOf(source) !== index);
  if (twice >= 0) refuse(`webhook.matchConditions[${twice}].expression: is given twice; remove one`);
  const keptMs = (ttl: string | undefined, byDefault: number, kept: boolean | undefined): number =>
    kept === false ? 0 : ttl === undefined ? byDefault : (parseDuration(ttl) ?? byDefault);
  return {
    endpoint: await readEndpoint(written.connectionInfo.kubeConfigFile),
    version: written.subjectAccessReviewVersion,
    timeoutMs: parseDuration(written.timeout) ?? MAX_TIMEOUT_MS,
    allowedMs: keptMs(written.authorizedTTL, AUTHORIZED_MS, cacheAuthorizedRequests),
    deniedMs: keptMs(written.unauthorizedTTL, UNAUTHORIZED_MS, cacheUnauthorizedRequests),
    failurePolicy: written.failurePolicy,
    ...(sources.length === 0 ? {} : { conditions: conditionsOf(sources, refuse) }),
  };
}

function conditionsOf(
  sources: readonly string[],
  refuse: (what: string) => never,
): ReturnType<typeof compileAccessConditions> {
  try {
    return compileAccessConditions(sources);
  } catch (error) {
    return refuse(`webhook.${messageOf(error).split('\n', 1)[0] ?? ''}`);
  }
}
