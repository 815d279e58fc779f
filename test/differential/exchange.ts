/** HTTP requests and responses over kept connections. */
import { Agent, request } from 'node:https';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Reply {
  readonly code: number;
  readonly type: string;
  readonly warnings: readonly string[];
  readonly bytes: Buffer;
}

interface Target {
  readonly port: number;
  readonly ca: string;
  readonly identity: { readonly certPem: string; readonly keyPem: string };
}

/** Sends requests to one server, any number concurrently. */
export class Connection {
  readonly #agent: Agent;
  readonly port: number;

  constructor(target: Target) {
    this.port = target.port;
    this.#agent = new Agent({
      keepAlive: true,
      ca: target.ca,
      cert: target.identity.certPem,
      key: target.identity.keyPem,
    });
  }

  send(one: Request): Promise<Reply> {
    const { method, path, headers, body } = one;
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      const options = { host: '127.0.0.1', port: this.port, agent: this.#agent, method, path };
      const sent = request({ ...options, headers: { ...headers, ...length } }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const warning = response.headers['warning'];
          resolve({
            code: response.statusCode ?? 0,
            type: response.headers['content-type'] ?? '',
            warnings: warning === undefined ? [] : [warning].flat(),
            bytes: Buffer.concat(chunks),
          });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
