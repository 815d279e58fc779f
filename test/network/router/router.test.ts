/** Routes that one host's router serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { parseLabelSelector } from '../../../src/base/selector.ts';
import { routerFacts } from '../../../src/host/controllers/router-facts.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import type { RoutingView } from '../../../src/network/router/core/port.ts';
import { OwnCertificate } from '../../../src/network/router/own-certificate.ts';
import { createRouter } from '../../../src/network/router/router.ts';
import { createAuthority, issue, lifetimeFrom, loadAuthority } from '../../../src/pki/index.ts';
import { localInformers } from '../../client/local-informers.ts';

const route = (name: string, namespace: string, labels: Record<string, string>) => ({
  metadata: { name, namespace, labels, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { host: `${name}.test`, wildcardPolicy: 'None', to: { kind: 'Service', name: 'web' } },
});

test("serves only routes that match the shard's selectors, and follows changed namespace labels", async () => {
  const local = localInformers();
  let view: RoutingView | undefined;
  const defaults: string[] = [];
  const router = createRouter({
    informers: local.factory,
    proxies: {
      create: () => ({
        start: async () => {},
        swap: (next) => {
          view = next;
        },
        useDefaultCertificate: ({ certificate }) => void defaults.push(certificate),
        metrics: () => '',
        stop: async () => {},
      }),
    },
    verify: () => undefined,
    needPods: () => {},
    clock,
    random,
    log: silentLog,
    config: {
      httpPort: 80,
      httpsPort: 443,
      statsPort: undefined,
      proxyProtocol: false,
      accessLog: false,
      policy: { domain: 'apps.test', wildcardRoutes: true },
      clusterCa: async () => '',
      routeSelector: parseLabelSelector('tier!=internal'),
      namespaceSelector: parseLabelSelector('team=web'),
    },
  });
  local.set('namespaces', { metadata: { name: 'shop', labels: { team: 'web' } } });
  local.set('namespaces', { metadata: { name: 'back' } });
  local.set('routes', route('open', 'shop', {}));
  local.set('routes', route('hidden', 'shop', { tier: 'internal' }));
  local.set('routes', route('other', 'back', {}));
  const data = { 'tls.crt': btoa('certificate'), 'tls.key': btoa('key') };
  local.set('secrets', { metadata: { name: 'router-certs-default', namespace: 'openshift-ingress' }, data } as object);
  await router.start();
  const served = (): string[] =>
    ['open', 'hidden', 'other'].filter((name) => {
      const facts = { secure: false, host: `${name}.test`, path: '/', query: '', method: 'GET' };
      return view?.request({ ...facts, header: () => undefined }).kind === 'backend';
    });
  const settles = async (wanted: readonly string[]): Promise<void> => {
    const deadline = performance.now() + 5_000;
    while (served().join() !== wanted.join() && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.deepEqual(served(), wanted);
  };
  await settles(['open']);
  assert.deepEqual(defaults.slice(0, 1), ['certificate']);
  local.set('namespaces', { metadata: { name: 'back', labels: { team: 'web' } } });
  await settles(['open', 'other']);
  local.set('routes', route('hidden', 'shop', {}));
  await settles(['open', 'hidden', 'other']);
  await router.stop();
});

test('reloads the default certificate of the host, and keeps the former one if the new certificate is invalid', async () => {
  const found = { certificate: 'one', key: 'key' };
  const warnings: string[] = [];
  let due: (() => void) | undefined;
  let changes = 0;
  const own = new OwnCertificate({
    read: async () => {
      if (found.certificate === '') throw new Error('no such file');
      return { ...found };
    },
    verify: ({ certificate }) => (certificate === 'bad' ? 'private key does not match public key' : undefined),
    clock: {
      ...clock,
      setTimer: (_delayMs, callback) => {
        due = callback;
        return { cancel: () => {} };
      },
    },
    log: { ...silentLog, warn: (_phrase, fields) => void warnings.push(String(fields?.['error'])) },
    changed: () => void changes++,
  });
  const next = async (certificate: string): Promise<string | undefined> => {
    found.certificate = certificate;
    due?.();
    await new Promise((resolve) => setImmediate(resolve));
    return own.current?.certificate;
  };
  await own.start();
  assert.equal(own.current?.certificate, 'one');
  assert.equal(await next('one'), 'one');
  assert.equal(await next('two'), 'two');
  assert.equal(await next('bad'), 'two');
  assert.equal(await next('bad'), 'two');
  assert.equal(await next(''), 'two');
  assert.equal(await next('three'), 'three');
  assert.equal(changes, 3);
  assert.deepEqual(warnings, ['private key does not match public key', 'no such file']);
  own.stop();
});

test('uses the certificate that hyperedge created as the default certificate while it is valid', async () => {
  const day = lifetimeFrom(Date.now(), 365);
  const authority = await createAuthority('openshift-signer', day);
  const loaded = loadAuthority(authority.certPem, authority.keyPem);
  const leaf = (domain: string) =>
    issue(loaded, {
      subject: { commonName: domain },
      usages: ['server'],
      names: { dns: [`*.${domain}`, domain], ips: [] },
      validity: day,
    });
  const own = await leaf('apps.test');
  const names = ['*.apps.test', 'apps.test'];
  const used = await routerFacts({ domain: 'apps.test' }, loaded, async () => own).issue(names);
  assert.equal(used.keyPem, own.keyPem);
  assert.ok(used.certPem.startsWith(own.certPem.trim()) && used.certPem.includes(authority.certPem.trim()));
  const other = await leaf('other.test');
  const failing = async (): Promise<never> => {
    throw new Error('open to others');
  };
  for (const installed of [async () => other, async () => undefined, failing]) {
    const made = await routerFacts({ domain: 'apps.test' }, loaded, installed).issue(names);
    assert.ok(made.keyPem !== other.keyPem && made.keyPem !== own.keyPem);
  }
});
