/** What of the cluster one host's router serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { parseLabelSelector } from '../../../../src/base/selector.ts';
import { createRouter } from '../../../../src/components/openshift/router/index.ts';
import type { RoutingView } from '../../../../src/core/routing/port.ts';
import { systemClock as clock, systemRandom as random } from '../../../../src/roles/process.ts';
import { localInformers } from '../../local-informers.ts';

const route = (name: string, namespace: string, labels: Record<string, string>) => ({
  metadata: { name, namespace, labels, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { host: `${name}.test`, wildcardPolicy: 'None', to: { kind: 'Service', name: 'web' } },
});

test('a shard serves what its selectors of labels match, and follows labels of namespaces', async () => {
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
    judge: () => undefined,
    needPods: () => {},
    clock,
    random,
    log: silentLog,
    config: {
      ...{ httpPort: 80, httpsPort: 443, statsPort: undefined, proxyProtocol: false, accessLog: false },
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
