/** The router of this host: routes, ingresses and HTTP routes on its ports 80 and 443. */
import { readFile } from 'node:fs/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { EventRecorder, InformerFactory } from '../../client/index.ts';
import { createNeedPods } from '../../client/informers/need-pods.ts';
import type { HostPolicy } from '../../network/router/core/index.ts';
import { createCertificateVerifier, proxyFactory } from '../../network/router/io/index.ts';
import { createRouter } from '../../network/router/router.ts';
import { nodeFiles, readSecretIfPresent } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

/**
 * Starts the router and returns a function that stops it. The start does not wait for the API server. If a port is in
 * use, the host continues without the router.
 */
export function startRouter(
  settings: Settings,
  informers: InformerFactory,
  recorder: EventRecorder,
  log: Log,
): () => Promise<void> {
  const { router: config, root, nodeIp } = settings;
  if (!config.enabled) return async () => {};
  const own = config.defaultCertificate;
  const router = createRouter({
    informers,
    proxies: proxyFactory(log, nodeIp.includes(':') || settings.ipFamilies.length > 1 ? '::' : '0.0.0.0'),
    verify: createCertificateVerifier(),
    needPods: createNeedPods(recorder, clock),
    clock,
    random,
    log,
    config: {
      ...config,
      statsPort: config.statsPort === 0 ? undefined : config.statsPort,
      ...(own === undefined ? {} : { ownCertificate: () => pairAt(own) }),
      policy: hostPolicyOf(settings),
      clusterCa: () => readFile(nodeFiles(root).clientCa, 'utf8'),
    },
  });
  router.start().catch((error: unknown) => log.error('router not started', { error: messageOf(error) }));
  return () => router.stop();
}

/**
 * Host names that routes may use. The host's own name is reserved for its API server and kubelet, because browsers send
 * cookies to all ports of a host name.
 */
export const hostPolicyOf = ({ openshift, nodeName }: Settings): HostPolicy => ({
  domain: openshift.domain,
  wildcardRoutes: openshift.wildcardRoutes === true,
  names: [nodeName],
});

/** Reads the default certificate. Throws CodedErrors if the key is missing or other users can read it. */
async function pairAt({ certFile, keyFile }: { readonly certFile: string; readonly keyFile: string }) {
  const [certificate, key] = await Promise.all([readFile(certFile, 'utf8'), readSecretIfPresent(keyFile)]);
  if (key === undefined)
    throw new CodedError('bad-config', `router.defaultCertificate: ${keyFile} is missing; restore it`);
  return { certificate, key };
}
