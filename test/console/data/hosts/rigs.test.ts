import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { AnyObject } from '../../../../src/console/data/api/resources.ts';
import {
  claimRig,
  consolePath,
  queueOf,
  switchPower,
  withoutConsole,
  withoutPower,
} from '../../../../src/console/data/hosts/rigs.ts';
import { FakeApi, json } from '../fake-api.ts';

suite('rigs', () => {
  test('requests for console and power of a rig use the path of the claim, with hostile names encoded', async () => {
    const claim = { kind: 'rigclaims', name: 'a/../b?x', namespace: 'n' } as const;
    const base = '/apis/rig.hyperedge.dev/v1alpha1/namespaces/n/rigclaims/a%2F..%2Fb%3Fx';
    assert.equal(consolePath(claim), `${base}/console?stdin=true&stdout=true&tty=true`);
    const rig = { kind: 'rigs', name: 'bench', namespace: '' } as const;
    assert.match(consolePath(rig), /^\/apis\/rig\.hyperedge\.dev\/v1alpha1\/rigs\/bench\/console\?/);
    const server = new FakeApi();
    server.answer = () => json({ message: 'supply on' });
    assert.equal(await switchPower(server.api, claim, 'cycle'), 'supply on');
    const [sent] = server.requests;
    assert.deepEqual(
      [sent?.request.method, sent?.url.pathname, sent?.url.search],
      ['POST', `${base}/power`, '?action=cycle'],
    );
  });

  test('rigs are claimed for a valid duration only', async () => {
    const server = new FakeApi();
    server.answer = () => json({ metadata: { name: 'console-x' } });
    assert.equal(await claimRig(server.api, 'bench', 'n', '30m'), 'console-x');
    assert.deepEqual(JSON.parse(String(server.requests[0]?.request.body)).spec, { rigName: 'bench', duration: '30m' });
    await assert.rejects(claimRig(server.api, 'bench', 'n', 'soon'), /duration soon/);
    assert.equal(server.requests.length, 1);
  });

  test('rigs list the holder first, then the queue, and omit claims that have ended', () => {
    const claim = (name: string, status: object, rigName = 'bench') =>
      ({ metadata: { name }, spec: { rigName }, status }) as AnyObject;
    const claims = [
      claim('second', { phase: 'Queued', position: 2 }),
      claim('first', { phase: 'Queued', position: 1 }),
      claim('gone', { phase: 'Expired', rig: 'bench' }),
      claim('holder', { phase: 'Granted', rig: 'bench' }),
      claim('other', { phase: 'Granted', rig: 'other' }, 'other'),
    ];
    assert.deepEqual(
      queueOf('bench', claims).map(({ metadata }) => metadata?.name),
      ['holder', 'first', 'second'],
    );
  });

  test('the page of a rig names the missing field if the rig has no console or power', () => {
    const rig = { spec: { power: { on: {}, off: {} } } } as unknown as AnyObject;
    assert.match(withoutConsole(rig) ?? '', /spec\.console/);
    assert.equal(withoutPower(rig, 'cycle'), undefined);
    assert.match(withoutPower({ spec: {} } as unknown as AnyObject, 'off') ?? '', /spec\.power\.off/);
  });
});
