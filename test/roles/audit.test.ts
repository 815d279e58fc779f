/** The flags of audit: upstream's defaults, and what it refuses. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { createHttp } from '../../src/io/http/index.ts';
import { openAudit } from '../../src/roles/audit.ts';
import { ApiUsageProblem, ApiValues } from '../../src/roles/config/apiserver/index.ts';

const open = (given: Record<string, string>) => {
  const values = new ApiValues((path) => path);
  for (const [name, text] of Object.entries(given)) values.give(name, [text], `--${name}`);
  return openAudit(values, { referredToBy: 'test', http: createHttp(), log: silentLog });
};

it('refuses what upstream refuses, of the back ends that are asked for', async () => {
  const log = { 'audit-log-path': '/nowhere/audit.log' };
  const webhook = { 'audit-webhook-config-file': '/nowhere/audit.kubeconfig' };
  const refused: ReadonlyArray<readonly [Record<string, string>, RegExp]> = [
    [{ ...log, 'audit-log-maxage': '-1' }, /--audit-log-maxage: -1 can't be a negative number/],
    [{ ...log, 'audit-log-maxsize': '-1' }, /--audit-log-maxsize: -1 can't be a negative number/],
    [{ ...log, 'audit-log-truncate-max-event-size': '0' }, /--audit-log-truncate-max-event-size: 0 must be a positive/],
    [
      { ...webhook, 'audit-webhook-truncate-max-batch-size': '10' },
      /--audit-webhook-truncate-max-batch-size: 10 must be greater than max event size \(102400\)/,
    ],
    [{ ...webhook, 'audit-webhook-batch-max-size': '0' }, /--audit-webhook-batch-max-size: 0 must be a positive/],
    [
      { ...log, 'audit-log-mode': 'batch', 'audit-log-batch-buffer-size': '-5' },
      /--audit-log-batch-buffer-size: -5 must be a positive/,
    ],
  ];
  for (const [given, message] of refused)
    await assert.rejects(
      open(given),
      (error: Error) => error instanceof ApiUsageProblem && message.test(error.message),
    );
  // The log's default mode has no batches, and a webhook that is not asked for is not judged.
  const fine = { ...log, 'audit-log-batch-buffer-size': '-5', 'audit-webhook-batch-max-size': '0' };
  assert.equal(await open(fine), undefined, 'without a policy nothing is recorded');
});
