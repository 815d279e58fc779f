/** Answers of pods, services and extension servers that a client of HTTP/2 cannot be sent as they are. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { it } from 'node:test';
import { answerHeaders } from '../../../../src/components/apiserver/streaming/forward.ts';

it('an answer without content loses its length', () => {
  for (const [statusCode, headers] of [
    [204, {}],
    [200, { 'content-length': '0' }],
  ] as const) {
    const answer = new IncomingMessage(new Socket());
    Object.assign(answer, { statusCode, headers: { 'content-length': '0', connection: 'close' } });
    assert.deepEqual(answerHeaders(answer), headers);
  }
});
