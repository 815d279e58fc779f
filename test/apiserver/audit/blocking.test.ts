/** Blocking audit modes, and size limits of sinks. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { AuditPolicy } from '../../../src/apiserver/index.ts';
import { startServer, type TestServer } from '../harness.ts';

const policy: AuditPolicy = {
  rules: [
    { level: 'None', users: ['quiet'] },
    { level: 'RequestResponse', resources: [{ group: '', resources: ['configmaps'] }] },
    { level: 'Metadata' },
  ],
};
const MAPS = '/api/v1/namespaces/default/configmaps';

interface Held {
  readonly stage: string;
  readonly line: string;
  release(kept: boolean): void;
}

describe('blocking audit', () => {
  const held: Held[] = [];
  let holds: (stage: string) => boolean = () => false;
  let server: TestServer;
  before(async () => {
    const sink = {
      blocks: true,
      accept: (line: string) => {
        const { stage, requestURI } = JSON.parse(line) as Record<'stage' | 'requestURI', string>;
        if (!requestURI.includes('watched=')) return undefined;
        return new Promise<boolean>((resolve) => {
          held.push({ stage, line, release: resolve });
          if (!holds(stage)) resolve(true);
        });
      },
      close: async () => undefined,
    };
    server = await startServer({ audit: { policy, sinks: [sink] } });
  });
  after(() => server.stop());
  beforeEach(() => {
    held.length = 0;
  });
  const until = async (stage: string): Promise<Held> => {
    for (;;) {
      const found = held.find((each) => each.stage === stage);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };

  for (const [what, path] of [
    ['an object', `${MAPS}/kube-root-ca.crt?watched=1`],
    ['a list', `${MAPS}?watched=1`],
    ['a refusal', `${MAPS}/missing?watched=1`],
    ['a document', '/api/v1?watched=1'],
  ] as const) {
    it(`ends the response with ${what} only after the audit event has been recorded`, async () => {
      holds = (stage) => stage === 'ResponseComplete';
      let answered = false;
      const answer = server.call('GET', path).finally(() => {
        answered = true;
      });
      const event = await until('ResponseComplete');
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(answered, false);
      event.release(true);
      const { code } = await answer;
      const { responseStatus } = JSON.parse(event.line) as { responseStatus: { code: number } };
      assert.equal(responseStatus.code, code);
      assert.deepEqual(
        held.map(({ stage }) => stage),
        ['RequestReceived', 'ResponseComplete'],
      );
    });
  }

  it('rejects requests whose audit events cannot be recorded', async () => {
    holds = (stage) => stage === 'RequestReceived';
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'unseen' } };
    const answer = server.call('POST', `${MAPS}?watched=1`, { body });
    (await until('RequestReceived')).release(false);
    const { code, body: failure } = await answer;
    assert.equal(code, 500);
    assert.match(String(failure['message']), /failed to store audit event/);
    assert.equal(held.length, 1);
    assert.equal((await server.call('GET', `${MAPS}/unseen`)).code, 404);
    const { text } = await server.call('GET', '/metrics');
    assert.match(text, /^apiserver_audit_requests_rejected_total 1$/m);
    assert.match(text, /^apiserver_audit_event_total [1-9]\d*$/m);
    assert.match(text, /^apiserver_audit_level_total\{level="RequestResponse"\} [1-9]\d*$/m);
  });

  it('starts a watch only after its audit event has been recorded', async () => {
    holds = (stage) => stage === 'ResponseStarted';
    let answered = false;
    const answer = server.call('GET', `${MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0&watched=1`).finally(() => {
      answered = true;
    });
    const event = await until('ResponseStarted');
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(answered, false);
    event.release(true);
    assert.equal((await answer).code, 200);
    await until('ResponseComplete');
    assert.deepEqual(
      held.map(({ stage }) => stage),
      ['RequestReceived', 'ResponseStarted', 'ResponseComplete'],
    );
  });
});

describe('audit sinks with size limits', () => {
  const short: string[] = [];
  const whole: string[] = [];
  const dropped: string[] = [];
  let server: TestServer;
  before(async () => {
    const into = (lines: string[]) => ({
      accept: (line: string) => {
        lines.push(line);
        return undefined;
      },
      close: async () => undefined,
    });
    const sinks = [{ ...into(short), maxEventBytes: 2000 }, into(whole)];
    server = await startServer({ audit: { policy, sinks, tooLarge: (id) => dropped.push(id) } });
  });
  after(() => server.stop());

  it('omits bodies of oversized audit events only for the sink with the limit', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big' }, data: { a: 'x'.repeat(3000) } };
    await server.call('POST', MAPS, { body, headers: { 'audit-id': 'big' } });
    const find = (lines: readonly string[]): Record<string, unknown> =>
      lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .find(({ auditID, stage }) => auditID === 'big' && stage === 'ResponseComplete') ?? {};
    const truncated = find(short);
    const full = find(whole);
    assert.equal(truncated['requestObject'], undefined);
    assert.equal(truncated['responseObject'], undefined);
    assert.equal((truncated['annotations'] as Record<string, string>)['audit.k8s.io/truncated'], 'true');
    assert.ok(full['requestObject'] !== undefined && full['responseObject'] !== undefined);
    assert.equal((full['annotations'] as Record<string, string>)['audit.k8s.io/truncated'], undefined);
    assert.deepEqual(dropped, []);
  });

  it('drops and reports audit events that exceed the limit even without bodies', async () => {
    const query = `?labelSelector=${'x'.repeat(60)}${',y'.repeat(1000)}`;
    await server.call('GET', `${MAPS}${query}`, { headers: { 'audit-id': 'long' } });
    assert.ok(!short.some((line) => line.includes('"long"')));
    assert.ok(whole.some((line) => line.includes('"long"')));
    assert.deepEqual(new Set(dropped), new Set(['long']));
  });
});
