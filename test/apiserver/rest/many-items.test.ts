/** Bodies with very many small items, which must not delay other clients. */
import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { after, before, describe, it } from 'node:test';
import { slack } from '../../support/slack.ts';
import { startServer, type TestServer } from '../harness.ts';

const COUNT = 900_000;
const items = Array(COUNT).fill('{}').join(',');

describe('bodies with very many items', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  const bodies: Record<string, [path: string, body: string]> = {
    'a pod': ['/api/v1/namespaces/default/pods', `{"spec":{"containers":[${items}]}}`],
    'a job': [
      '/apis/batch/v1/namespaces/default/jobs',
      `{"spec":{"template":{"spec":{"initContainers":[${items}],"containers":[]}}}}`,
    ],
    'a service': ['/api/v1/namespaces/default/services', `{"spec":{"ports":[${items}]}}`],
  };
  for (const [what, [path, raw]] of Object.entries(bodies))
    it(`rejects ${what} with ${COUNT} items without blocking`, async () => {
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      const rejected = await server.call<{ message: string }>('POST', path, { raw });
      delay.disable();
      assert.equal(rejected.code, 400, rejected.text);
      assert.match(rejected.body.message, /Too many: the lists and maps must have at most 65536 items in total/);
      assert.ok(delay.max / 1e6 < 500 * slack(), `the loop stood still for ${delay.max / 1e6} ms`);
    });
});
