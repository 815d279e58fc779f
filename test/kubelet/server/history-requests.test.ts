import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { HistoryQueryError } from '../../../src/kubelet/history/core/query.ts';
import { sendHistory } from '../../../src/kubelet/server/history-requests.ts';
import { HttpError } from '../../../src/kubelet/server/http-error.ts';
import type { KubeletResponse } from '../../../src/kubelet/server/port.ts';

/** A response that keeps what is written; the reader of a slow one pauses after each piece. */
class TestResponse extends EventEmitter {
  status = 0;
  body = '';
  ended = false;
  private readonly isSlow: boolean;

  constructor(isSlow = false) {
    super();
    this.isSlow = isSlow;
  }

  writeHead(status: number): this {
    this.status = status;
    return this;
  }

  write(text: string): boolean {
    this.body += text;
    if (this.isSlow) setImmediate(() => this.emit('drain'));
    return !this.isSlow;
  }

  end(): void {
    this.ended = true;
  }
}

function* pieces(count: number): Generator<string> {
  for (let at = 0; at < count; at++) yield `${at},`;
}

async function send(
  response: TestResponse,
  answer: () => Generator<string>,
  signal = new AbortController().signal,
): Promise<void> {
  await sendHistory(response as unknown as KubeletResponse, { answer }, new URLSearchParams(), signal);
}

describe('usage history requests', () => {
  it('usage history requests are answered in pieces, at the pace of the reader', async () => {
    for (const isSlow of [false, true]) {
      const response = new TestResponse(isSlow);
      await send(response, () => pieces(5));
      assert.deepEqual([response.status, response.body, response.ended], [200, '0,1,2,3,4,', true]);
      assert.equal(response.listenerCount('drain'), 0);
    }
  });

  it('usage history requests with an invalid parameter or a too large response return 400 with the name of the parameter', async () => {
    const invalid = (): Generator<string> => {
      throw new HistoryQueryError('points: too many');
    };
    function* large(): Generator<string> {
      yield invalid().next().value;
    }
    for (const answer of [invalid, large]) {
      const response = new TestResponse();
      await assert.rejects(
        send(response, answer),
        (error: unknown) => error instanceof HttpError && error.code === 400 && error.message === 'points: too many',
      );
      assert.equal(response.status, 0);
    }
  });

  it('usage history requests are answered with 404 by a kubelet that keeps no history', async () => {
    const response = new TestResponse() as unknown as KubeletResponse;
    const signal = new AbortController().signal;
    await assert.rejects(
      sendHistory(response, undefined, new URLSearchParams(), signal),
      (error: unknown) => error instanceof HttpError && error.code === 404,
    );
  });

  it('usage history requests end when the client disconnects', async () => {
    const aborter = new AbortController();
    const response = new TestResponse();
    await send(
      response,
      function* () {
        yield 'a';
        aborter.abort();
        yield 'b';
        yield 'c';
      },
      aborter.signal,
    );
    assert.equal(response.body, 'a');
  });
});
