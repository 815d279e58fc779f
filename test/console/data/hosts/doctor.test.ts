import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  countsText,
  type HostCheck,
  type HostFinding,
  problemsOf,
  runHostChecks,
} from '../../../../src/console/data/hosts/doctor.ts';
import { FakeApi, json } from '../fake-api.ts';

const check = (id: string, group: string, result: string, ...findings: readonly HostFinding[]): HostCheck => ({
  id,
  group,
  result,
  title: `${id} is fine`,
  findings: findings.length === 0 ? [{ result, evidence: id }] : findings,
});
const report = {
  host: 'n1',
  time: '2026-01-01T00:00:00Z',
  counts: { ok: 2, skipped: 1, unknown: 0, warning: 1, error: 0 },
  checks: [
    check(
      'mtu',
      'network',
      'warning',
      { result: 'ok', evidence: 'eth0' },
      { result: 'warning', evidence: 'eth1', fix: 'ip' },
    ),
    check('ports', 'network', 'ok'),
    check('swap', 'hardware', 'skipped'),
    check('cpu', 'hardware', 'ok'),
  ],
};

suite('host checks', () => {
  test('host checks are requested with POST from the kubelet of the node', async () => {
    const fake = new FakeApi();
    fake.answer = () => json(report);
    const found = await runHostChecks(fake.api, 'n 1', new AbortController().signal);
    assert.deepEqual(
      fake.requests.map(({ url, request }) => [request.method, url.pathname]),
      [['POST', '/api/v1/nodes/n%201/proxy/hyperedge/doctor']],
    );
    assert.equal(found.checks.length, 4);
  });

  test('a malformed response of host checks causes an error that names the field', async () => {
    const fake = new FakeApi();
    fake.answer = () => json({ ...report, checks: [{ id: 1 }] });
    await assert.rejects(runHostChecks(fake.api, 'n', new AbortController().signal), /checks of node n.*checks\[0\]/);
  });

  test('groups host checks, counts successful checks and shows findings with problems', () => {
    assert.deepEqual(
      problemsOf(report).map(({ name, checks, fine }) => [
        name,
        fine,
        checks.map(({ id, findings }) => [id, findings]),
      ]),
      [
        ['network', 1, [['mtu', [{ result: 'warning', evidence: 'eth1', fix: 'ip' }]]]],
        ['hardware', 2, []],
      ],
    );
    assert.equal(countsText(report.counts), '1 warning, 2 ok, 1 skipped');
    assert.equal(countsText({ error: 2, unknown: 1 }), '2 errors, 1 unknown');
  });
});
