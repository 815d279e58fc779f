/**
 * Audit webhook: sends events in batches or one by one. Source: k8s.io/apiserver/plugin/pkg/audit/{buffered,webhook}.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { callRemote, type RemoteDeps, type RemoteEndpoint } from '../webhooks/remote.ts';
import { type BatchSettings, EventBatches } from './batches.ts';
import type { AuditMode, AuditSink } from './port.ts';

export interface AuditWebhook extends BatchSettings {
  readonly endpoint: RemoteEndpoint;
  readonly mode: AuditMode;
  readonly backoffMs: number;
  /** Maximum size of one request and of one event in bytes. Undefined: no limit. */
  readonly truncate?: { readonly maxBatchBytes: number; readonly maxEventBytes: number };
}

const TIMEOUT_MS = 30_000;
const ATTEMPTS = 5;
const CLOSE_MS = 3_000;
/** Maximum number of concurrent requests. A slow webhook delays later batches but does not block them. */
const AT_ONCE = 16;

export function createAuditWebhook(webhook: AuditWebhook, deps: RemoteDeps & { readonly log: Log }): AuditSink {
  const { clock, log } = deps;
  const { mode, truncate } = webhook;
  let dropped = 0;
  let closing = false;

  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  /** Sends a batch with retries. Returns false if the events are lost. */
  const send = async (events: readonly string[]): Promise<boolean> => {
    const body = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${events.join(',')}]}`;
    let backoffMs = webhook.backoffMs;
    for (let attempt = 1; ; attempt++) {
      try {
        await callRemote(deps, webhook.endpoint, TIMEOUT_MS, body);
        return true;
      } catch (error) {
        if (attempt === ATTEMPTS || closing) {
          log.error('audit events dropped: delivery failed', {
            events: events.length,
            error: messageOf(error),
          });
          return false;
        }
        await pause(backoffMs);
        backoffMs *= 1.5;
      }
    }
  };
  const batches = new EventBatches(
    webhook,
    {
      atOnce: AT_ONCE,
      fit: (events, most) => fitting(events, most, truncate?.maxBatchBytes),
      deliver: async (events) => void (await send(events)),
    },
    clock,
  );
  const unanswered = new Set<Promise<boolean>>();
  const sendAlone = async (event: string): Promise<boolean> => {
    const sent = send([event]);
    unanswered.add(sent);
    const delivered = await sent;
    unanswered.delete(sent);
    return delivered || mode === 'blocking';
  };
  return {
    blocks: mode !== 'batch',
    ...(truncate === undefined ? {} : { maxEventBytes: truncate.maxEventBytes }),
    accept(event) {
      if (mode !== 'batch') return sendAlone(event);
      if (batches.offer(event)) return undefined;
      dropped += 1;
      if (dropped === 1 || dropped % 1000 === 0)
        log.error('audit events dropped: the webhook is too slow', { dropped });
      return undefined;
    },
    async close() {
      closing = true;
      await Promise.race([Promise.all([batches.close(), ...unanswered]), pause(CLOSE_MS)]);
      batches.stop();
    },
  };
}

/** Number of first events that fit into one request. */
function fitting(events: readonly string[], most: number, maxBytes: number | undefined): number {
  if (maxBytes === undefined) return most;
  let bytes = 0;
  for (let at = 0; at < most; at += 1) {
    bytes += Buffer.byteLength(events[at] as string);
    if (bytes > maxBytes && at > 0) return at;
  }
  return most;
}
