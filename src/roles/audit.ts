/** The flags of audit → what is recorded and where it goes. */
import { CodedError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type AuditSettings, createAuditWebhook } from '../components/apiserver/index.ts';
import type { HttpPort } from '../components/apiserver/port.ts';
import { openAuditLog } from '../io/audit/index.ts';
import type { ApiValues } from './config/apiserver/index.ts';
import { parseAuditPolicy } from './config/audit-policy.ts';
import { readReferenced } from './files.ts';
import { systemClock as clock } from './process.ts';
import { readRemoteEndpoint } from './remote-endpoint.ts';

/** Undefined when nothing is to be recorded. Throws CodedErrors that name flag or file. */
export async function openAudit(
  values: ApiValues,
  { referredToBy, http, log }: { readonly referredToBy: string; readonly http: HttpPort; readonly log: Log },
): Promise<AuditSettings | undefined> {
  const policyFile = values.file('audit-policy-file');
  const path = values.text('audit-log-path') === '-' ? '-' : values.file('audit-log-path');
  const webhook = values.file('audit-webhook-config-file');
  if (path === undefined && webhook === undefined) {
    if (policyFile !== undefined) log.warn('--audit-policy-file without --audit-log-path: nothing is recorded');
    return undefined;
  }
  if (policyFile === undefined) {
    log.warn('no --audit-policy-file is given: nothing is recorded');
    return undefined;
  }
  const policy = parseAuditPolicy(await readReferenced(policyFile, referredToBy), policyFile);
  const sinks: AuditSettings['sinks'][number][] = [];
  if (path !== undefined) {
    try {
      sinks.push(
        await openAuditLog({
          path,
          maxMegabytes: values.number('audit-log-maxsize'),
          maxDays: values.number('audit-log-maxage'),
          maxBackups: values.number('audit-log-maxbackup'),
          bufferEvents: values.number('audit-log-batch-buffer-size'),
          clock,
          log,
        }),
      );
    } catch (error) {
      throw new CodedError('unwritable', `${values.label('audit-log-path')}: ${messageOf(error)}`, { cause: error });
    }
  }
  if (webhook !== undefined) {
    sinks.push(
      createAuditWebhook(
        {
          endpoint: await readRemoteEndpoint(webhook, referredToBy),
          bufferEvents: values.number('audit-webhook-batch-buffer-size'),
          batchEvents: values.number('audit-webhook-batch-max-size'),
          batchWaitMs: values.milliseconds('audit-webhook-batch-max-wait'),
          backoffMs: values.milliseconds('audit-webhook-initial-backoff'),
        },
        { backends: http.backends, clock, log },
      ),
    );
  }
  return {
    policy,
    sinks,
    ...(values.boolean('audit-log-truncate-enabled')
      ? { maxEventBytes: values.number('audit-log-truncate-max-event-size') }
      : {}),
  };
}
