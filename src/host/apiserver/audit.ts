/** Converts the audit flags to the audit policy and its sinks. */

import { parseAuditPolicy } from '../../apiserver/config/audit-policy.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import {
  type AuditMode,
  type AuditSettings,
  type BatchSettings,
  batchedSink,
  createAuditWebhook,
} from '../../apiserver/index.ts';
import { openAuditLog } from '../../apiserver/io/audit/log-file.ts';
import type { HttpPort } from '../../apiserver/port.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type OpenSecret, readReferenced } from '../config/files.ts';
import { systemClock as clock } from '../process/process.ts';
import { readRemoteEndpoint } from './remote-endpoint.ts';

interface Access {
  readonly referredToBy: string;
  readonly http: HttpPort;
  readonly log: Log;
  readonly onOpenSecret?: OpenSecret | undefined;
}

type Sink = AuditSettings['sinks'][number];
type Backend = 'log' | 'webhook';

/**
 * Audit settings; undefined without an audit policy or sink. Throws CodedErrors and ApiUsageProblems that name the flag
 * or the file.
 */
export async function openAudit(values: ApiValues, access: Access): Promise<AuditSettings | undefined> {
  const { log } = access;
  const policyFile = values.file('audit-policy-file');
  const path = values.text('audit-log-path') === '-' ? '-' : values.file('audit-log-path');
  const webhook = values.file('audit-webhook-config-file');
  if (path !== undefined) checkLog(values);
  if (webhook !== undefined) checkBackend(values, 'webhook');
  if (path === undefined && webhook === undefined) {
    if (policyFile !== undefined) log.warn('--audit-policy-file without --audit-log-path: nothing is recorded');
    return undefined;
  }
  if (policyFile === undefined) {
    log.warn('no --audit-policy-file is given: nothing is recorded');
    return undefined;
  }
  const policy = parseAuditPolicy(await readReferenced(policyFile, access.referredToBy), policyFile);
  const sinks: Sink[] = [];
  if (path !== undefined) sinks.push(await openLog(path, values, log));
  if (webhook !== undefined) sinks.push(await openWebhook(webhook, values, access));
  return {
    policy,
    sinks,
    tooLarge: (auditId) => log.error('audit event dropped: too large even without bodies', { auditId }),
  };
}

/** Source: k8s.io/apiserver/pkg/server/options AuditLogOptions.Validate. */
function checkLog(values: ApiValues): void {
  checkBackend(values, 'log');
  for (const name of ['audit-log-maxage', 'audit-log-maxbackup', 'audit-log-maxsize'] as const)
    if (values.number(name) < 0) values.refuse(name, `${values.number(name)} can't be a negative number`);
}

function checkBackend(values: ApiValues, backend: Backend): void {
  const positive = [`audit-${backend}-truncate-max-event-size`] as const;
  const ofBatches = [`audit-${backend}-batch-buffer-size`, `audit-${backend}-batch-max-size`] as const;
  const ofThrottle = [`audit-${backend}-batch-throttle-qps`, `audit-${backend}-batch-throttle-burst`] as const;
  const batches = values.text(`audit-${backend}-mode`) === 'batch';
  const throttled = batches && values.boolean(`audit-${backend}-batch-throttle-enable`);
  for (const name of [...positive, ...(batches ? ofBatches : []), ...(throttled ? ofThrottle : [])])
    if (!(Number(values.text(name)) > 0)) values.refuse(name, `${values.text(name)} must be a positive number`);
  const batch = `audit-${backend}-truncate-max-batch-size` as const;
  const event = values.number(`audit-${backend}-truncate-max-event-size`);
  if (values.number(batch) < event)
    values.refuse(batch, `${values.number(batch)} must be greater than max event size (${event})`);
}

const modeOf = (values: ApiValues, backend: Backend): AuditMode => values.text(`audit-${backend}-mode`) as AuditMode;

function batchesOf(values: ApiValues, backend: Backend): BatchSettings {
  return {
    bufferEvents: values.number(`audit-${backend}-batch-buffer-size`),
    batchEvents: values.number(`audit-${backend}-batch-max-size`),
    batchWaitMs: values.milliseconds(`audit-${backend}-batch-max-wait`),
    ...(values.boolean(`audit-${backend}-batch-throttle-enable`)
      ? {
          throttle: {
            perSecond: Number(values.text(`audit-${backend}-batch-throttle-qps`)),
            burst: values.number(`audit-${backend}-batch-throttle-burst`),
          },
        }
      : {}),
  };
}

async function openLog(path: string, values: ApiValues, log: Log): Promise<Sink> {
  try {
    const file = await openAuditLog({
      path,
      mode: modeOf(values, 'log'),
      maxMegabytes: values.number('audit-log-maxsize'),
      maxDays: values.number('audit-log-maxage'),
      maxBackups: values.number('audit-log-maxbackup'),
      compress: values.boolean('audit-log-compress'),
      bufferEvents: values.number('audit-log-batch-buffer-size'),
      ...(values.boolean('audit-log-truncate-enabled')
        ? { maxEventBytes: values.number('audit-log-truncate-max-event-size') }
        : {}),
      clock,
      log,
    });
    const batches = batchesOf(values, 'log');
    // Without batches, the log file itself writes each event immediately.
    if (modeOf(values, 'log') !== 'batch' || (batches.batchEvents === 1 && batches.throttle === undefined)) return file;
    let dropped = 0;
    return batchedSink(file, batches, clock, () => {
      dropped += 1;
      if (dropped === 1 || dropped % 1000 === 0) log.error('audit events dropped: batch queue full', { dropped });
    });
  } catch (error) {
    throw new CodedError('unwritable', `${values.label('audit-log-path')}: ${messageOf(error)}`, { cause: error });
  }
}

async function openWebhook(
  file: string,
  values: ApiValues,
  { referredToBy, http, log, onOpenSecret }: Access,
): Promise<Sink> {
  const truncate = {
    maxBatchBytes: values.number('audit-webhook-truncate-max-batch-size'),
    maxEventBytes: values.number('audit-webhook-truncate-max-event-size'),
  };
  return createAuditWebhook(
    {
      endpoint: await readRemoteEndpoint(file, referredToBy, onOpenSecret),
      mode: modeOf(values, 'webhook'),
      ...batchesOf(values, 'webhook'),
      backoffMs: values.milliseconds('audit-webhook-initial-backoff'),
      ...(values.boolean('audit-webhook-truncate-enabled') ? { truncate } : {}),
    },
    { backends: http.backends, clock, log },
  );
}
