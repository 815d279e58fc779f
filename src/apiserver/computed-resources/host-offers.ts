/**
 * Registration offers of blank hosts, which have no credentials. A signature binds each offer to the host's own key. An
 * offer creates a BareMetalHost that is not online; it grants nothing. An administrator must approve the host before a
 * Machine claims it, and the join data is encrypted for the host's key.
 */

import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import type { Node } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { ApiError, isApiError } from '../../api/meta/status.ts';
import { peerNetwork } from '../../base/addresses/addresses.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import {
  type BareMetalHost,
  HOST_GROUP,
  type HostOffer,
  type HostOfferStatus,
  type HostStatus,
  MACHINE_ID_ANNOTATION,
  MACHINE_NAMESPACE,
  OFFER_ANNOTATION,
  OFFER_GROUP,
  offerText,
  REPORTED_ANNOTATION,
  SEALED_ANNOTATION,
  SEALING_ANNOTATION,
  SOURCE_ANNOTATION,
} from '../../openshift/machines/kinds/machine-types.ts';
import { sha256Base64 } from '../../wire/digest.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { WriteContext } from '../rest/context.ts';
import { createObject } from '../rest/writes/create.ts';
import { updateObject } from '../rest/writes/update.ts';
import { admitOffer, mayWriteOffer, tooManyOffers } from './offer-limits.ts';
import type { ReviewRequest } from './review-request.ts';

const RESOURCE = 'baremetalhosts';
const SUBJECT = { group: OFFER_GROUP, plural: 'hostoffers' };
/** Maximum number of hosts that no administrator has approved. */
const MOST_UNAPPROVED = 64;
/** Maximum number of unapproved hosts per source address. */
const MOST_PER_SOURCE = 32;
/** Minimum interval between writes that change only the time and facts of a host. */
const REPORT_MS = 45_000;
const ANONYMOUS = 'system:anonymous';
/** Key for testing the keys of hosts: a key of low order yields the same shared secret with every key. */
const probe = generateKeyPairSync('x25519');

const refusal = (name: string | undefined, why: string): ApiError =>
  new ApiError('Forbidden', `hostoffers.${OFFER_GROUP} ${JSON.stringify(name ?? '')} is forbidden: ${why}`, {
    name: name ?? '',
    group: SUBJECT.group,
    kind: SUBJECT.plural,
  });

/**
 * Handles an offer and returns it with its status. Throws ApiErrors: Forbidden for an invalid signature, AlreadyExists
 * for a name or ID of another host, TooManyRequests.
 */
export async function offerHost(
  context: WriteContext,
  object: KubeObject,
  { user, dryRun, from }: ReviewRequest,
): Promise<KubeObject> {
  const offer = object as HostOffer;
  const { spec = {} } = offer;
  const source = peerNetwork(from);
  // Limit the rate before the expensive checks, which are the signature and the search of all hosts.
  if (user.name === ANONYMOUS) admitOffer(context, source);
  requireSignature(spec);
  const kind = context.kinds.stored(RESOURCE, HOST_GROUP);
  await context.cache.freshen();
  const hosts = hostsOf(kind);
  const key = spec.signingKey ?? '';
  const known = hosts.find((host) => annotation(host, OFFER_ANNOTATION) === key);
  const answer = (status: HostOfferStatus): KubeObject => ({ ...offer, status }) as KubeObject;
  if (known !== undefined) {
    requireOwn(spec, known);
    if (!dryRun) await report(context, spec, known, source);
    return answer(statusOf(spec, known));
  }
  // The host is already a node. Without a BareMetalHost, it can be neither wiped nor claimed, so none is created.
  if (spec.state === 'joined') return answer({ phase: 'Joined' });
  requireFree(context, spec, hosts);
  const unapproved = hosts.filter((host) => annotation(host, OFFER_ANNOTATION) !== '' && host.spec?.online !== true);
  if (unapproved.length >= MOST_UNAPPROVED)
    throw tooManyOffers(
      `${MOST_UNAPPROVED} hosts wait for their approval; approve or delete some of baremetalhosts in ${MACHINE_NAMESPACE}`,
    );
  if (unapproved.filter((host) => annotation(host, SOURCE_ANNOTATION) === source).length >= MOST_PER_SOURCE)
    throw tooManyOffers(
      `${MOST_PER_SOURCE} hosts from ${source} wait for their approval; approve or delete some of baremetalhosts in ${MACHINE_NAMESPACE}`,
    );
  if (!dryRun) {
    if (!mayWriteOffer(context, source)) throw tooManyOffers('too many offers of hosts; try again later');
    await register(context, spec, source);
  }
  return answer({ phase: 'Waiting', host: spec.name ?? '' });
}

const annotation = (host: BareMetalHost, name: string): string => host.metadata?.annotations?.[name] ?? '';

const hostsOf = (kind: ServedKind): BareMetalHost[] =>
  (kind.cache?.list(MACHINE_NAMESPACE) ?? []).map((each) => each.parse<BareMetalHost>());

function requireSignature(spec: HostOffer['spec'] & object): void {
  const { signingKey = '', sealingKey = '', signature = '' } = spec;
  let key: KeyObject;
  try {
    key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: signingKey }, format: 'jwk' });
  } catch {
    throw refusal(spec.name, 'spec.signingKey: not an Ed25519 public key');
  }
  if (isLowOrder(sealingKey))
    throw refusal(spec.name, 'spec.sealingKey: a point of low order, which gives no secrecy; generate another key');
  if (!verify(undefined, Buffer.from(offerText(spec)), key, Buffer.from(signature, 'base64url')))
    throw refusal(spec.name, 'spec.signature: does not verify with spec.signingKey');
}

/** Reports whether an X25519 key has low order; OpenSSL rejects a key agreement with it. Source: RFC 7748, 6.1. */
function isLowOrder(sealingKey: string): boolean {
  const { privateKey } = probe;
  try {
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: sealingKey }, format: 'jwk' });
    diffieHellman({ privateKey, publicKey });
    return false;
  } catch {
    return true;
  }
}

/** Rejects an offer that has the signing key of `host` but another name, machine ID or sealing key. */
function requireOwn({ name, machineID, sealingKey }: HostOffer['spec'] & object, host: BareMetalHost): void {
  const isSame =
    host.metadata?.name === name &&
    annotation(host, MACHINE_ID_ANNOTATION) === machineID &&
    annotation(host, SEALING_ANNOTATION) === sealingKey;
  if (isSame) return;
  throw refusal(
    name,
    `its key belongs to host ${host.metadata?.name} with another machine-id, name or sealing key; remove the offer files on the host`,
  );
}

/** Rejects an offer with 'AlreadyExists' if another host has the name or machine ID. */
function requireFree(context: WriteContext, spec: HostOffer['spec'] & object, hosts: readonly BareMetalHost[]): void {
  const { name = '', machineID } = spec;
  const refuse = (what: string): never => {
    throw new ApiError('AlreadyExists', `hostoffers.${OFFER_GROUP} ${JSON.stringify(name)} is refused: ${what}`, {
      name,
      group: SUBJECT.group,
      kind: SUBJECT.plural,
    });
  };
  if (hosts.some(({ metadata }) => metadata?.name === name))
    refuse(`spec.name: baremetalhost ${name} exists with another key; give another name by --node-name`);
  if (hosts.some((host) => annotation(host, MACHINE_ID_ANNOTATION) === machineID))
    refuse('spec.machineID: another host of the inventory has the same machine-id');
  const nodes = (context.kinds.stored('nodes', '').cache?.list(undefined) ?? []).map((each) => each.parse<Node>());
  if (nodes.some(({ metadata }) => metadata?.name === name))
    refuse(`spec.name: node ${name} exists; give another name by --node-name`);
  if (nodes.some(({ status }) => status?.nodeInfo?.machineID === machineID))
    refuse('spec.machineID: a node of the cluster has the same machine-id');
}

async function register(context: WriteContext, spec: HostOffer['spec'] & object, source: string): Promise<void> {
  const { name = '', machineID = '', signingKey = '', sealingKey = '', hardware = {} } = spec;
  const host: BareMetalHost = {
    metadata: {
      name,
      namespace: MACHINE_NAMESPACE,
      annotations: {
        [OFFER_ANNOTATION]: signingKey,
        [SEALING_ANNOTATION]: sealingKey,
        [MACHINE_ID_ANNOTATION]: machineID,
        [REPORTED_ANNOTATION]: 'blank',
        [SOURCE_ANNOTATION]: source,
      },
    },
    spec: {
      online: false,
      automatedCleaningMode: 'metadata',
      description: `offered itself; compare the fingerprint ${fingerprintOf(signingKey)} with that of its console`,
    },
  };
  const request = ownRequest(context, RESOURCE, HOST_GROUP, MACHINE_NAMESPACE, name);
  try {
    await createObject(context, { ...request, own: false }, host);
  } catch (error) {
    // The host has sent its offer to two servers at the same time.
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  await writeStatus(context, name, { hardware });
}

/** Key fingerprint in OpenSSH's format, which the administrator compares. */
function fingerprintOf(key: string): string {
  return `SHA256:${sha256Base64(Buffer.from(key, 'base64url')).replace(/=+$/, '')}`;
}

/** Writes changes of the state at once, and time and facts at most once per REPORT_MS. */
async function report(
  context: WriteContext,
  spec: HostOffer['spec'] & object,
  host: BareMetalHost,
  source: string,
): Promise<void> {
  const { name = '' } = host.metadata ?? {};
  const { state = '', hardware = {} } = spec;
  const changed = annotation(host, REPORTED_ANNOTATION) !== state;
  const due = context.clock.nowMs() - (Date.parse(host.status?.lastUpdated ?? '') || 0) > REPORT_MS;
  if (!changed && !due) return;
  // If the limits do not permit a write, the host still gets a response and reports again. They apply to unapproved
  // hosts only.
  if (host.spec?.online !== true && !mayWriteOffer(context, source)) return;
  if (changed) {
    const request = ownRequest(context, RESOURCE, HOST_GROUP, MACHINE_NAMESPACE, name);
    const { strategy } = request.kind.definition;
    await updateObject(context, request, {
      strategy,
      next: (current) => ({
        ...current,
        metadata: {
          ...current.metadata,
          annotations: { ...current.metadata?.annotations, [REPORTED_ANNOTATION]: state },
        },
      }),
    });
  }
  await writeStatus(context, name, semanticEqual(hardware, {}) ? {} : { hardware });
}

async function writeStatus(context: WriteContext, name: string, facts: Partial<HostStatus>): Promise<void> {
  const request = { ...ownRequest(context, RESOURCE, HOST_GROUP, MACHINE_NAMESPACE, name), subresource: 'status' };
  const strategy = request.kind.definition.statusStrategy;
  if (strategy === undefined) return;
  const lastUpdated = timestamp(context.clock.nowMs());
  await updateObject(context, request, {
    strategy,
    next: (current) => {
      const { status } = current as BareMetalHost;
      return { ...current, status: { ...status, ...facts, poweredOn: true, lastUpdated } } as KubeObject;
    },
  });
}

function statusOf({ state }: HostOffer['spec'] & object, host: BareMetalHost): HostOfferStatus {
  const { name = '' } = host.metadata ?? {};
  const { consumerRef } = host.spec ?? {};
  const base = { host: name, ...(consumerRef?.name === undefined ? {} : { machine: consumerRef.name }) };
  if (state === 'joined') {
    if (host.status?.provisioning?.state !== 'deprovisioning') return { ...base, phase: 'Joined' };
    return { ...base, phase: 'Released', cleaning: host.spec?.automatedCleaningMode ?? 'metadata' };
  }
  const sealed = annotation(host, SEALED_ANNOTATION);
  return consumerRef === undefined || sealed === ''
    ? { ...base, phase: 'Waiting' }
    : { ...base, phase: 'Claimed', sealedJoin: sealed };
}
