/** Sequential requests to a test server over one connection, because handshakes would take most of the time. */
import type { CallOptions, TestServer } from '../apiserver/harness.ts';
import { Channel } from '../fuzz/api/wire.ts';

const ANSWER_MS = 60_000;

export interface PlainAnswer {
  readonly code: number;
  readonly text: string;
  readonly body: unknown;
}

export type Send = (method: string, path: string, options?: CallOptions) => Promise<PlainAnswer>;

export function keepAlive(server: TestServer): { send: Send; close(): void } {
  const channel = new Channel({ port: server.port, ca: server.ca.certPem }, server.admin);
  return {
    close: () => channel.close(),
    send: async (method, path, options = {}) => {
      const body = Buffer.from(options.raw ?? (options.body === undefined ? '' : JSON.stringify(options.body)));
      const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${options.type ?? 'application/json'}\r\ncontent-length: ${body.length}\r\n\r\n`;
      const reply = await channel.exchange(Buffer.concat([Buffer.from(head), body]), false, false, ANSWER_MS);
      const text = reply.body.toString('utf8');
      return {
        code: reply.code,
        text,
        body: text.startsWith('{') && !text.includes('}\n{') ? JSON.parse(text) : undefined,
      };
    },
  };
}
