/** A webhook for tests: HTTPS with its own authority, AdmissionReview requests and responses. */
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import type { TestServer } from '../harness.ts';

export interface Review {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: Record<string, unknown> & {
    readonly uid: string;
    readonly operation: string;
    readonly object: Doc | null;
    readonly oldObject: Doc | null;
  };
}

export type Doc = Record<string, unknown> & { metadata: { name?: string; labels?: Record<string, string> } };

/** Returns the response without its uid, or a complete body, or handles the raw connection itself. */
export type Behaviour = (review: Review, raw: import('node:http').ServerResponse) => object | string | undefined;

export class WebhookServer {
  readonly #server: Server;
  readonly #behaviours = new Map<string, Behaviour>();
  readonly seen: { readonly path: string; readonly review: Review }[] = [];
  readonly caBundle: string;

  private constructor(server: Server, caPem: string) {
    this.#server = server;
    this.caBundle = Buffer.from(caPem).toString('base64');
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
        const path = request.url ?? '';
        this.seen.push({ path, review });
        const answer = this.#behaviours.get(path.split('?', 1)[0] ?? '')?.(review, response);
        if (answer === undefined) return;
        response.setHeader('content-type', 'application/json');
        const { apiVersion, kind } = review;
        response.end(
          typeof answer === 'string'
            ? answer
            : JSON.stringify({ apiVersion, kind, response: { uid: review.request.uid, ...answer } }),
        );
      });
    });
  }

  static async start(): Promise<WebhookServer> {
    const day = lifetimeFrom(Date.now(), 1);
    const ca = await createAuthority('webhook-ca', day);
    const pair = await issue(ca, {
      subject: { commonName: 'webhook' },
      usages: ['server'],
      names: { dns: ['localhost', 'hook.default.svc'], ips: ['127.0.0.1'] },
      validity: day,
    });
    // A long keep-alive, so that connections stay open between calls on a busy machine.
    const server = createServer({ cert: pair.certPem, key: pair.keyPem, keepAliveTimeout: 120_000 });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return new WebhookServer(server, ca.certPem);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  on(path: string, behaviour: Behaviour): void {
    this.#behaviours.set(path, behaviour);
  }

  /** Requests that the webhook at `path` has received since the last call. */
  take(path: string): Review['request'][] {
    const found = this.seen.filter((each) => each.path.split('?', 1)[0] === path).map(({ review }) => review.request);
    this.seen.length = 0;
    return found;
  }

  /** A webhook entry for a configuration. */
  hook(path: string, more: Record<string, unknown> = {}): Record<string, unknown> {
    return {
      name: `${path.slice(1)}.example.com`,
      clientConfig: { url: `https://127.0.0.1:${this.port}${path}`, caBundle: this.caBundle },
      rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      ...more,
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}

export const patchOf = (...operations: object[]): object => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';

/** Creates or replaces a webhook configuration. */
export async function configure(
  server: TestServer,
  kind: 'Mutating' | 'Validating',
  name: string,
  ...webhooks: object[]
): Promise<void> {
  const path = `${REGISTRATION}/${kind.toLowerCase()}webhookconfigurations`;
  const body = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks,
  };
  const created = await server.call('POST', path, { body });
  if (created.code !== 201) throw new Error(created.text);
}

export async function unconfigure(server: TestServer): Promise<void> {
  for (const kind of ['mutating', 'validating']) {
    const gone = await server.call('DELETE', `${REGISTRATION}/${kind}webhookconfigurations`);
    if (gone.code !== 200) throw new Error(gone.text);
  }
}
