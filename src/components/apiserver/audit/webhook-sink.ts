/** Audit events for another server, in batches. Source: k8s.io/apiserver/plugin/pkg/audit/{buffered,webhook}. */

import type { Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { askRemote, type RemoteDeps, type RemoteEndpoint } from '../webhooks/remote.ts';
import type { AuditSink } from './port.ts';

export interface AuditWebhook {
  readonly endpoint: RemoteEndpoint;
  readonly bufferEvents: number;
  readonly batchEvents: number;
  readonly batchWaitMs: number;
  readonly backoffMs: number;
}

const TIMEOUT_MS = 30_000;
const ATTEMPTS = 5;
const CLOSE_MS = 3_000;

export function createAuditWebhook(webhook: AuditWebhook, deps: RemoteDeps & { readonly log: Log }): AuditSink {
  const { clock, log } = deps;
  let waiting: string[] = [];
  let timer: Timer | undefined;
  let sending: Promise<void> | undefined;
  let dropped = 0;
  let closing = false;

  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  const send = async (events: readonly string[]): Promise<void> => {
    const body = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${events.join(',')}]}`;
    let backoffMs = webhook.backoffMs;
    for (let attempt = 1; ; attempt++) {
      try {
        await askRemote(deps, webhook.endpoint, TIMEOUT_MS, body);
        return;
      } catch (error) {
        if (attempt === ATTEMPTS || closing) {
          log.error('audit events could not be delivered and are dropped', {
            events: events.length,
            error: messageOf(error),
          });
          return;
        }
        await pause(backoffMs);
        backoffMs *= 1.5;
      }
    }
  };
  const drain = (): void => {
    timer?.cancel();
    timer = undefined;
    if (sending !== undefined || waiting.length === 0) return;
    const batch = waiting.slice(0, webhook.batchEvents);
    waiting = waiting.slice(webhook.batchEvents);
    sending = send(batch).finally(() => {
      sending = undefined;
      if (waiting.length >= webhook.batchEvents || closing) drain();
      else if (waiting.length > 0) arm();
    });
  };
  const arm = (): void => {
    timer ??= clock.setTimer(webhook.batchWaitMs, drain);
  };
  return {
    accept(event) {
      if (waiting.length >= webhook.bufferEvents) {
        dropped += 1;
        if (dropped === 1 || dropped % 1000 === 0)
          log.error('audit events are dropped: the webhook is too slow', { dropped });
        return;
      }
      waiting.push(event);
      if (waiting.length >= webhook.batchEvents) drain();
      else arm();
    },
    async close() {
      closing = true;
      const rest = async (): Promise<void> => {
        drain();
        while (sending !== undefined) await sending;
      };
      await Promise.race([rest(), pause(CLOSE_MS)]);
      timer?.cancel();
    },
  };
}
