/** Responses of backends that are invalid in HTTP/2. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { it } from 'node:test';
import { answerHeaders } from '../../../src/apiserver/streaming/forward.ts';

it('the proxy removes the content length of a 204 response', () => {
  for (const [statusCode, headers] of [
    [204, {}],
    [200, { 'content-length': '0' }],
  ] as const) {
    const answer = new IncomingMessage(new Socket());
    Object.assign(answer, { statusCode, headers: { 'content-length': '0', connection: 'close' } });
    assert.deepEqual(answerHeaders(answer), headers);
  }
});
