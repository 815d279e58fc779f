/** Sequences of dependent requests: each is sent to both servers before the next one. */
import type { Connection, Request } from '../../differential/exchange.ts';
import type { Findings } from '../api/findings.ts';
import type { Pair } from '../api/pair.ts';

interface Noted {
  readonly resourceVersion: string;
  readonly uid: string;
  readonly continue: string;
}

type Name = keyof Noted;

/**
 * In paths and bodies, `<name.resourceVersion>`, `<name.uid>` and `<name.continue>` are replaced by the values that
 * `note` stored under that name.
 */
export class Session {
  readonly #pair: Pair;
  readonly #findings: Findings;
  readonly #topic: string;
  readonly #noted = new Map<Connection, Map<string, Noted>>();

  constructor(pair: Pair, findings: Findings, topic: string) {
    this.#pair = pair;
    this.#findings = findings;
    this.#topic = topic;
  }

  get #servers(): readonly Connection[] {
    return [this.#pair.ours, this.#pair.upstream];
  }

  /** Stores the values that each server assigned to the object or list at `path`. */
  async note(name: string, path: string): Promise<void> {
    for (const server of this.#servers) {
      const resolved = this.#resolve({ method: 'GET', path }, server);
      const { bytes } = await server.send(resolved);
      const { metadata = {} } = JSON.parse(bytes.toString()) as { metadata?: Partial<Noted> };
      const found = { resourceVersion: '', uid: '', continue: '', ...metadata };
      const names = this.#noted.get(server) ?? new Map<string, Noted>();
      this.#noted.set(server, names.set(name, found));
    }
  }

  /** Sends a request to both servers without comparing the responses. */
  async tell(request: Request): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.send(this.#resolve(request, server))));
  }

  async ask(request: Request, view?: (body: unknown) => unknown): Promise<void> {
    const { method, path, headers = {}, body = '' } = request;
    const how = Object.values(headers).join(' ');
    await this.#findings.ask(this.#pair, request, {
      topic: `${this.#topic} ${method} ${path} ${how} ${JSON.stringify(String(body).slice(0, 300))}`,
      resolve: (one, server) => this.#resolve(one, server),
      warnings: true,
      ...(view === undefined ? {} : { view }),
    });
  }

  #resolve(request: Request, server: Connection): Request {
    const noted = this.#noted.get(server);
    const fill = (text: string, encode: (value: string) => string): string =>
      text.replaceAll(/<(\w+)\.(resourceVersion|uid|continue)>/g, (whole, name: string, field: string) =>
        encode(noted?.get(name)?.[field as Name] ?? whole),
      );
    const { body } = request;
    const path = fill(request.path, encodeURIComponent);
    return typeof body === 'string' ? { ...request, path, body: fill(body, (value) => value) } : { ...request, path };
  }
}
