/**
 * Offer of a blank host to a cluster. The host pins the CA by its hash, sends a signed offer without credentials, and
 * waits until a Machine has claimed it. After the join it continues to report, so that it detects its release.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { decodeJson, object, optional, text as string } from '../../base/decode.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { type ApiClient, createApiClient } from '../../client/index.ts';
import { createHostFacts } from '../../kubelet/io/host-facts/index.ts';
import {
  type HostHardware,
  type HostOffer,
  type HostOfferStatus,
  OFFER_GROUP,
  OFFER_VERSION,
  offerText,
} from '../../openshift/machines/kinds/machine-types.ts';
import { nodeFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { readHardware } from '../hardware/index.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { discoverPinned } from './discovery.ts';
import { hardwareFacts } from './hardware-facts.ts';
import { type OfferKeys, offerKeys } from './offer-keys.ts';
import { type JoinDetails, openJoin } from './sealed-join.ts';

export interface OfferContext {
  readonly log: Log;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

const PATH = `/apis/${OFFER_GROUP}/${OFFER_VERSION}/hostoffers`;
const BLANK_MS = 2_000;
const JOINED_MS = 10_000;
const RETRY_MS = 10_000;
const HARDWARE_MS = 15_000;

/**
 * Sends offers until a Machine has claimed the host. Resolves with the join settings. Throws CodedErrors 'bad-offer'
 * and 'stopped'.
 */
export async function offerUntilClaimed(
  settings: Settings,
  offer: { readonly server: string; readonly caHash: string },
  { log, note, signal }: OfferContext,
): Promise<JoinDetails> {
  const keys = await offerKeys(settings.root);
  const facts = await factsOf(settings);
  let reported = '';
  const logProgress = (text: string): void => {
    if (text !== reported) note(text);
    reported = text;
  };
  while (!signal.aborted) {
    let client: ApiClient | undefined;
    try {
      const { caPem } = await discoverPinned(offer.server, offer.caHash);
      client = createApiClient({
        server: offer.server,
        userAgent: 'hyperedge/offer',
        log,
        clock,
        ca: caPem,
      });
      for (; !signal.aborted; await pause(BLANK_MS, signal)) {
        const { phase, host, machine, sealedJoin } = await send(client, settings, keys, 'blank', facts);
        if (phase === 'Claimed' && sealedJoin !== undefined) {
          const details = openSealed(sealedJoin, keys, offer.caHash);
          note(`claimed by machine ${machine}`);
          return details;
        }
        logProgress(
          `offered to ${offer.server} as ${host ?? settings.nodeName}, fingerprint ${keys.fingerprint}; waits for a machine`,
        );
      }
    } catch (error) {
      if (error instanceof CodedError && error.code === 'bad-offer') throw error;
      logProgress(`offer: ${messageOf(error)}; retrying`);
      await pause(RETRY_MS, signal);
    } finally {
      await client?.close();
    }
  }
  throw new CodedError('stopped', 'offer: stopped before a machine has claimed this host');
}

export interface Released {
  /** Whether the data is deleted instead of moved to a backup. */
  readonly purge: boolean;
}

/** Reports this host as joined until its Machine is deleted. `released` resolves then. */
export function followRelease(settings: Settings, log: Log): { readonly released: Promise<Released>; stop(): void } {
  const stopping = new AbortController();
  const released = Promise.withResolvers<Released>();
  const follow = async (): Promise<void> => {
    const keys = await offerKeys(settings.root);
    const facts = await factsOf(settings);
    const opened = await openClient(nodeFiles(settings.root).kubeconfig, 'hyperedge/offer', {
      clock,
      random,
      log: silentLog,
    });
    try {
      for (; !stopping.signal.aborted; await pause(JOINED_MS, stopping.signal)) {
        try {
          const { phase, cleaning } = await send(opened.client, settings, keys, 'joined', facts);
          if (phase === 'Released') return released.resolve({ purge: cleaning !== 'disabled' });
        } catch (error) {
          // The error is ignored, because the next report may be sent to another API server.
          log.v(2, 'offer not reported', { error: messageOf(error) });
        }
      }
    } finally {
      await opened.close();
    }
  };
  void follow().catch((error: unknown) => log.warn('release of this host not watched', { error: messageOf(error) }));
  return { released: released.promise, stop: () => stopping.abort() };
}

async function send(
  client: ApiClient,
  { nodeName }: Settings,
  keys: OfferKeys,
  state: 'blank' | 'joined',
  { machineID, hardware }: Facts,
): Promise<HostOfferStatus> {
  const { signingKey, sealingKey } = keys;
  const spec = { name: nodeName, machineID, signingKey, sealingKey, state, hardware };
  const body: HostOffer = {
    apiVersion: `${OFFER_GROUP}/${OFFER_VERSION}`,
    kind: 'HostOffer',
    metadata: { name: nodeName },
    spec: { ...spec, signature: keys.sign(offerText(spec)) },
  };
  const { status = {} } = await client.request<HostOffer>('POST', PATH, body);
  return status;
}

const SEALED = object({ sealed: optional(string) });

/**
 * Decrypts the join settings. Throws CodedError 'bad-offer' if they are for another host or another cluster than the
 * pinned one.
 */
function openSealed(content: string, keys: OfferKeys, caHash: string): JoinDetails {
  const { sealed } = decodeJson(SEALED, content, 'offer');
  const details = openJoin(sealed ?? '', keys.sealing);
  if (details.caHash === caHash) return details;
  throw new CodedError('bad-offer', `offer.caHash: the claim is for a cluster with ${details.caHash}; check the hash`);
}

interface Facts {
  readonly machineID: string;
  readonly hardware: HostHardware;
}

async function factsOf({ root }: Settings): Promise<Facts> {
  const info = await createHostFacts({ root, nowMs: () => clock.nowMs() }).info();
  // The time is limited: reading the hardware runs programs of the host, which may hang on broken hardware.
  const late = wait(HARDWARE_MS, undefined, { ref: false });
  const hardware = await Promise.race([readHardware().catch(() => undefined), late]);
  return { machineID: info.machineId, hardware: hardwareFacts(info, hardware ?? undefined) };
}

/** Waits for `ms` ± 20 %, so that many hosts do not report at the same time. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms * (0.8 + 0.4 * random.random()), undefined, { signal }).catch(ignore('an aborted pause ends early'));
}
