/** Probes `/readyz` of an API server, verified with the cluster's CA. */
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { connect as tcpConnect } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from 'node:tls';
import { messageOf } from '../../../base/errors.ts';
import type { Finding } from '../core/port.ts';
import type { ReadinessProbe } from '../port.ts';
import { parseAuthority } from './authority.ts';

/** Time after which a probe without a response also tests whether the host is reachable. */
const LATE_MS = 200;
/**
 * Pause between two connection attempts, and wait after the second attempt. A single lost packet must not count as a
 * failure.
 */
const SYN_GAP_MS = 200;
/** Time limit of a probe, longer than the API server's own timeout for its store. */
const ANSWER_MS = 2_500;
const MAX_BODY_BYTES = 16 * 1024;
/** Errors that occur when the server has closed a kept connection. They do not count as a result of the probe. */
const STALE = new Set(['ECONNRESET', 'EPIPE']);
const ABSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ETIMEDOUT', 'ENOTFOUND']);

export interface ProbeOptions {
  /** PEM of the cluster's authorities; undefined if it cannot be read. */
  ca(): Promise<string | undefined>;
  /** Name or address in the certificate that clients of the balancer verify: 127.0.0.1. */
  readonly identity: string;
}

/**
 * An agent that verifies the certificate's identity itself. Node does not keep connections of requests with their own
 * `checkServerIdentity`.
 */
class IdentityAgent extends Agent {
  readonly #identity: string;

  constructor(identity: string) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
    this.#identity = identity;
  }

  override createConnection(options: ConnectionOptions): Duplex {
    return connectTls({
      ...options,
      checkServerIdentity: (_, certificate) => checkServerIdentity(this.#identity, certificate),
    });
  }
}

type Result = Awaited<ReturnType<ReadinessProbe['probe']>>;

export function createReadinessProbe(options: ProbeOptions): ReadinessProbe {
  const agents = new Map<string, Agent>();
  const agentOf = (target: string): Agent => {
    let agent = agents.get(target);
    if (agent === undefined) {
      agent = new IdentityAgent(options.identity);
      agents.set(target, agent);
    }
    return agent;
  };
  return {
    async probe(target) {
      const ca = await options.ca();
      if (ca === undefined) return { finding: (await accepts(target)) ? 'ready' : 'unreachable', detail: 'CA missing' };
      const first = await probeOnce(target, agentOf(target), ca);
      if (first !== 'stale' && first.finding === 'ready') return first;
      // The kept connection may be the cause, so the next probe opens another one.
      agents.get(target)?.destroy();
      agents.delete(target);
      if (first !== 'stale') return first;
      const again = await probeOnce(target, agentOf(target), ca);
      return again === 'stale' ? { finding: 'unready', detail: 'connection reset' } : again;
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
      agents.clear();
    },
  };
}

/** Sends one probe. Resolves with `stale` if the server had closed the kept connection before the request. */
function probeOnce(target: string, agent: Agent, ca: string): Promise<Result | 'stale'> {
  return new Promise((resolve) => {
    const sent = request({
      ...parseAuthority(target),
      path: '/readyz',
      agent,
      ca,
      minVersion: 'TLSv1.2',
      headers: { 'user-agent': 'hyperedge-nodelb' },
    });
    const finish = (result: Result | 'stale'): void => {
      clearTimeout(late);
      clearTimeout(limit);
      resolve(result);
    };
    const late = setTimeout(() => {
      void accepts(target).then((accepted) => {
        if (accepted) return;
        finish({ finding: 'unreachable', detail: 'no TCP handshake' });
        sent.destroy();
      });
    }, LATE_MS);
    const limit = setTimeout(() => {
      finish({ finding: 'silent', detail: `no answer within ${ANSWER_MS} ms` });
      sent.destroy();
    }, ANSWER_MS);
    sent.on('response', (response) => void read(response).then(finish));
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (sent.reusedSocket && STALE.has(error.code ?? '')) finish('stale');
      else finish({ finding: findingOf(error), detail: messageOf(error) });
    });
    sent.end();
  });
}

function findingOf(error: NodeJS.ErrnoException): Finding {
  const code = error.code ?? '';
  if (ABSENT.has(code)) return 'unreachable';
  return /^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_OSSL)/.test(code) ? 'untrusted' : 'unready';
}

async function read(response: IncomingMessage): Promise<Result> {
  const { statusCode = 0 } = response;
  let body = '';
  try {
    response.setEncoding('utf8');
    for await (const text of response) if (body.length < MAX_BODY_BYTES) body += text;
  } catch (error) {
    return { finding: 'unready', detail: messageOf(error) };
  }
  // A server that denies anonymous access to its health endpoint is nevertheless running.
  if (statusCode < 300 || statusCode === 401 || statusCode === 403) return { finding: 'ready', detail: '' };
  const failed = [...body.matchAll(/^\[-\](\S+)/gm)].map(([, check]) => check);
  return {
    finding: failed.includes('shutdown') ? 'stopping' : 'unready',
    detail: `HTTP ${statusCode}${failed.length === 0 ? '' : `: ${failed.join(', ')}`}`,
  };
}

/** Whether the host's kernel accepts connections, which distinguishes a busy server from a lost host. */
function accepts(target: string): Promise<boolean> {
  return new Promise((resolve) => {
    const settled = new AbortController();
    let left = 2;
    const attempt = (): void => {
      const socket = tcpConnect(parseAuthority(target));
      socket.setTimeout(SYN_GAP_MS, () => socket.destroy());
      settled.signal.addEventListener('abort', () => socket.destroy(), { once: true });
      socket.once('connect', () => {
        resolve(true);
        settled.abort();
      });
      socket.on('error', () => {});
      socket.once('close', () => {
        left -= 1;
        if (left === 0) resolve(false);
      });
    };
    attempt();
    setTimeout(() => {
      if (!settled.signal.aborted) attempt();
    }, SYN_GAP_MS).unref();
  });
}
