/** Replacement of the serving certificate and of the client authorities at run time. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';
import { test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import type { CertificateSettings } from '../../../src/apiserver/index.ts';
import { createAuthority, issue, type KeyPair, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { startServer } from '../harness.ts';

const validity = lifetimeFrom(Date.now(), 1);
const MAP = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';

function statusOf(port: number, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/api/v1/namespaces', agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    })
      .once('error', reject)
      .end();
  });
}

function servedBy(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
      socket.destroy();
    }).once('error', reject);
  });
}

test('after a CA replacement accepts clients of the new CA and rejects clients of the old CA, also on open connections', {
  timeout: 60_000,
}, async () => {
  const [before, later, proxies] = await Promise.all(
    ['before', 'later', 'proxies'].map((n) => createAuthority(n, validity)),
  );
  assert.ok(before !== undefined && later !== undefined && proxies !== undefined);
  const admin = (ca: typeof before) =>
    issue(ca, { subject: { commonName: 'root', organizations: ['system:masters'] }, usages: ['client'], validity });
  const serving = () =>
    issue(before, {
      subject: { commonName: 's' },
      usages: ['server'],
      names: { dns: [], ips: ['127.0.0.1'] },
      validity,
    });
  const settings = (pair: KeyPair, ca: typeof before, proxyCa: typeof before): CertificateSettings => ({
    serving: { certificate: pair.certPem, key: pair.keyPem },
    clientCa: ca.certPem,
    proxyCa: proxyCa.certPem,
  });
  const [first, second, old, fresh, proxy] = await Promise.all([
    serving(),
    serving(),
    admin(before),
    admin(later),
    issue(proxies, { subject: { commonName: 'proxy' }, usages: ['client'], validity }),
  ]);
  let current = settings(first, before, before);
  let changed = (): void => {};
  const server = await startServer({
    config: { requestHeader: { ca: before.certPem, allowedNames: ['proxy'] } },
    certificates: {
      get current() {
        return current;
      },
      subscribe: (listener) => {
        changed = listener;
      },
    },
  });
  const agentOf = ({ certPem, keyPem }: KeyPair) =>
    new Agent({ cert: certPem, key: keyPem, keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const kept = agentOf(old);
  try {
    assert.equal(await statusOf(server.port, kept), 200);
    const early = agentOf(fresh);
    assert.equal(await statusOf(server.port, early), 401);
    early.destroy();
    assert.equal(await servedBy(server.port), new X509Certificate(first.certPem).fingerprint256);
    current = settings(second, later, proxies);
    changed();
    assert.equal(await servedBy(server.port), new X509Certificate(second.certPem).fingerprint256);
    assert.equal(await statusOf(server.port, kept), 401);
    const agent = agentOf(fresh);
    assert.equal(await statusOf(server.port, agent), 200);
    agent.destroy();
    const headers = { 'x-remote-user': 'ann', 'x-remote-group': 'system:masters' };
    const tls = { host: '127.0.0.1', port: server.port, rejectUnauthorized: false };
    const seen = await new Promise<number | undefined>((resolve, reject) => {
      const options = { ...tls, cert: proxy.certPem, key: proxy.keyPem, agent: false, path: MAP, headers };
      request(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      })
        .once('error', reject)
        .end();
    });
    assert.equal(seen, 200);
    // The published config map contains both authorities for the transition.
    const holds = async (): Promise<boolean> => {
      const answer = await new Promise<string>((resolve, reject) => {
        const options = { ...tls, cert: fresh.certPem, key: fresh.keyPem, agent: false, path: MAP };
        request(options, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk;
          });
          response.once('end', () => resolve(text));
        })
          .once('error', reject)
          .end();
      });
      const { data } = JSON.parse(answer) as { data: Record<string, string> };
      const has = (key: string, ca: typeof before): boolean => data[key]?.includes(ca.certPem.trim()) === true;
      return (
        has('client-ca-file', later) &&
        has('client-ca-file', before) &&
        has('requestheader-client-ca-file', proxies) &&
        has('requestheader-client-ca-file', before)
      );
    };
    while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    kept.destroy();
    await server.stop();
  }
});

test('accepts only the configured TLS versions and cipher suites', { timeout: 60_000 }, async () => {
  const suite = 'ECDHE-ECDSA-AES256-GCM-SHA384';
  const spoken = (port: number, options: ConnectionOptions): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
        socket.destroy();
      }).once('error', () => resolve('refused'));
    });
  const older = { maxVersion: 'TLSv1.2' } as const;
  const newest = await startServer({ config: { tls: { minVersion: 'TLSv1.3' } } });
  try {
    assert.equal(await spoken(newest.port, older), 'refused');
    assert.match(await spoken(newest.port, {}), /^TLSv1\.3 /);
  } finally {
    await newest.stop();
  }
  const chosen = await startServer({ config: { tls: { ciphers: `${suite}:TLS_AES_128_GCM_SHA256` } } });
  try {
    assert.equal(await spoken(chosen.port, older), `TLSv1.2 ${suite}`);
    assert.equal(await spoken(chosen.port, { ...older, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }), 'refused');
  } finally {
    await chosen.stop();
  }
});
