/** TokenRequest. Source: k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go; KEP-1205. */

import type { TokenRequest } from '../../../api/generated/authentication/v1.ts';
import type { Node, Pod, ServiceAccount } from '../../../api/generated/core/v1.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { TokenOrder } from '../../authentication/service-accounts.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { ServerContext } from '../context.ts';

type TokenRequestContext = Pick<ServerContext, 'admission' | 'cache' | 'clock' | 'config' | 'random' | 'tokens'>;

const DEFAULT_SECONDS = 3600;
const POD_TOKEN_SECONDS = 3607;
const EXTENDED_SECONDS = 365 * 24 * 3600;
const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
const SUBJECT = { group: 'authentication.k8s.io', kind: 'TokenRequest' };
const SUBJECT_KIND = { ...SUBJECT, version: 'v1' };

export async function createToken(
  context: TokenRequestContext,
  request: WriteRequest,
  body: TokenRequest,
): Promise<TokenRequest> {
  const before = await accountOf(context, request);
  body.spec ??= { audiences: [] };
  body.spec.expirationSeconds ??= DEFAULT_SECONDS;
  const admission: AdmissionRequest = {
    operation: 'CREATE',
    kind: request.kind,
    subresource: 'token',
    namespace: request.namespace,
    name: request.name,
    body,
    old: before,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
    bodyKind: SUBJECT_KIND,
  };
  // Webhooks may change audiences, expiration and bound object, so the body is evaluated afterwards.
  await context.admission.mutate(admission);
  checkNames(request, body);
  checkSeconds(body);
  if ((body.spec.audiences ?? []).length === 0) body.spec.audiences = [...context.tokens.defaultAudiences];
  await context.admission.validate(admission);
  const account = await accountOf(context, request);
  checkUid(request, body, account);
  const { audiences = [], expirationSeconds: seconds = DEFAULT_SECONDS } = body.spec;
  const limits = context.config.serviceAccounts;
  const lifetimeSeconds = Math.min(seconds, limits.maxTokenSeconds ?? seconds);
  if (lifetimeSeconds < seconds)
    request.warnings.push(`requested expiration of ${seconds} seconds shortened to ${lifetimeSeconds} seconds`);
  const own = bound(context, request, body);
  // If a request has the default lifetime of projected tokens, the token is valid for a year, for clients that
  // read their token only once. Other lifetimes are not extended.
  const extended =
    limits.extendTokens === true &&
    lifetimeSeconds === POD_TOKEN_SECONDS &&
    own.pod !== undefined &&
    audiences.every((each) => context.tokens.defaultAudiences.includes(each));
  const order: TokenOrder = {
    namespace: request.namespace,
    serviceAccount: { name: request.name, uid: account.metadata?.uid ?? '' },
    audiences,
    lifetimeSeconds: extended ? EXTENDED_SECONDS : lifetimeSeconds,
    ...(extended ? { warnAfterSeconds: lifetimeSeconds } : {}),
    id: context.random.uuid(),
    ...own,
  };
  const minted = context.tokens.mint(order);
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {
      name: request.name,
      namespace: request.namespace,
      uid: account.metadata?.uid ?? '',
      creationTimestamp: timestamp(context.clock.nowMs()),
    },
    spec: { ...body.spec, audiences: [...audiences], expirationSeconds: lifetimeSeconds },
    status: {
      token: request.options.dryRun ? '' : minted.token,
      expirationTimestamp: timestamp(
        extended ? minted.expirationMs - (EXTENDED_SECONDS - lifetimeSeconds) * 1000 : minted.expirationMs,
      ),
    },
  };
}

async function accountOf(context: TokenRequestContext, request: WriteRequest): Promise<ServiceAccount> {
  await context.cache.freshen();
  const account = context.cache.kind('serviceaccounts').get(request.namespace, request.name)?.parse<ServiceAccount>();
  if (account === undefined) throw errors.notFound(request.kind, request.name);
  return account;
}

function checkUid(request: WriteRequest, body: TokenRequest, account: ServiceAccount): void {
  const uid = body.metadata?.uid ?? '';
  if (uid === '' || uid === account.metadata?.uid) return;
  throw errors.conflict(
    { group: SUBJECT.group, plural: SUBJECT.kind },
    request.name,
    `the UID in the token request (${uid}) does not match the UID of the service account (${account.metadata?.uid})`,
  );
}

function checkSeconds({ spec }: TokenRequest): void {
  const seconds = spec?.expirationSeconds ?? DEFAULT_SECONDS;
  const at = 'spec.expirationSeconds';
  const failures = [
    ...(seconds < MIN_SECONDS
      ? [fieldError.invalid(at, seconds, 'may not specify a duration less than 10 minutes')]
      : []),
    ...(seconds > MAX_SECONDS
      ? [fieldError.invalid(at, seconds, 'may not specify a duration larger than 2^32 seconds')]
      : []),
  ];
  if (failures.length > 0) throw invalid(SUBJECT, '', failures);
}

/** Rejects a body whose name or namespace differs from the name or namespace of the service account. */
function checkNames(request: WriteRequest, { metadata = {} }: TokenRequest): void {
  const { name = '', namespace = '' } = metadata;
  if (namespace !== '' && namespace !== request.namespace)
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  if (name !== '' && name !== request.name)
    throw invalid(SUBJECT, request.name, [
      fieldError.invalid('metadata.name', name, 'must match the service account name if specified'),
    ]);
}

/**
 * The object to which the token is bound. The object must exist and have the requested UID. A pod must run as this
 * service account.
 */
function bound(
  context: TokenRequestContext,
  request: WriteRequest,
  body: TokenRequest,
): Pick<TokenOrder, 'pod' | 'node' | 'secret'> {
  const reference = body.spec?.boundObjectRef;
  if (reference === undefined || reference === null) return {};
  const name = reference.name ?? '';
  const read = <T extends KubeObject>(prefix: string, namespace: string, plural: string): T => {
    const object = context.cache.kind(prefix).get(namespace, name)?.parse<T>();
    if (object === undefined) throw errors.notFound({ group: '', plural }, name);
    const uid = object.metadata?.uid ?? '';
    if (reference.uid !== undefined && reference.uid !== '' && reference.uid !== uid) {
      throw errors.conflict(
        { group: '', plural },
        name,
        `the UID in the bound object reference (${reference.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
      );
    }
    return object;
  };
  switch (`${reference.apiVersion ?? 'v1'} ${reference.kind ?? ''}`) {
    case 'v1 Pod': {
      const pod = read<Pod>('pods', request.namespace, 'pods');
      if (pod.spec?.serviceAccountName !== request.name) {
        throw errors.badRequest(
          `cannot bind token for serviceaccount ${JSON.stringify(request.name)} to pod running with different serviceaccount name.`,
        );
      }
      const nodeName = pod.spec.nodeName ?? '';
      const node = nodeName === '' ? undefined : context.cache.kind('minions').get('', nodeName)?.parse<Node>();
      return {
        pod: { name, uid: pod.metadata?.uid ?? '' },
        // As upstream, the token names the pod's node even if no such Node exists.
        ...(nodeName === '' ? {} : { node: { name: nodeName, uid: node?.metadata?.uid ?? '' } }),
      };
    }
    case 'v1 Node':
      return { node: { name, uid: read<Node>('minions', '', 'nodes').metadata?.uid ?? '' } };
    case 'v1 Secret':
      return { secret: { name, uid: read('secrets', request.namespace, 'secrets').metadata?.uid ?? '' } };
    default:
      throw errors.badRequest(
        `cannot bind token to object of type ${String(reference.apiVersion)}, Kind=${String(reference.kind)}`.slice(
          0,
          512,
        ),
      );
  }
}
