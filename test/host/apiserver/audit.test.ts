import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { ApiUsageProblem, ApiValues } from '../../../src/apiserver/config/index.ts';
import { createHttp } from '../../../src/apiserver/io/http/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openAudit } from '../../../src/host/apiserver/audit.ts';

const open = (given: Record<string, string>) => {
  const values = new ApiValues((path) => path);
  for (const [name, text] of Object.entries(given)) values.give(name, [text], `--${name}`);
  return openAudit(values, { referredToBy: 'test', http: createHttp(), log: silentLog });
};

it('rejects invalid settings of the enabled audit back ends as upstream does', async () => {
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
  for (const flag of ['qps', 'burst'])
    await assert.rejects(
      open({ ...webhook, [`audit-webhook-batch-throttle-${flag}`]: '0' }),
      new RegExp(`--audit-webhook-batch-throttle-${flag}: 0 must be a positive number`),
    );
  for (const [given, message] of refused)
    await assert.rejects(
      open(given),
      (error: Error) => error instanceof ApiUsageProblem && message.test(error.message),
    );
  // Batches are off in the log's default mode, and settings of a disabled webhook are not checked.
  const fine = { ...log, 'audit-log-batch-buffer-size': '-5', 'audit-webhook-batch-max-size': '0' };
  assert.equal(await open(fine), undefined, 'without a policy nothing is recorded');
});

it('writes the log in batches if batch mode is enabled', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'audit-batches-'));
  try {
    const policy = join(directory, 'policy.yaml');
    await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n');
    const path = join(directory, 'audit.log');
    const given = { 'audit-policy-file': policy, 'audit-log-path': path, 'audit-log-mode': 'batch' };
    const batches = { 'audit-log-batch-max-size': '3', 'audit-log-batch-max-wait': '1h' };
    const sink = (await open({ ...given, ...batches }))?.sinks[0];
    for (const event of ['1', '2', '3', '4']) sink?.accept(event);
    while ((await readFile(path, 'utf8')) === '') await new Promise((resolve) => setTimeout(resolve, 2));
    assert.equal(await readFile(path, 'utf8'), '1\n2\n3\n');
    await sink?.close();
    assert.equal(await readFile(path, 'utf8'), '1\n2\n3\n4\n');
  } finally {
    await rm(directory, { recursive: true });
  }
});
