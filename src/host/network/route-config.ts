/** `hyperedge haproxy-config --routes`: converts the routing table of this cluster to a configuration of HAProxy. */
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import {
  gateways,
  httpRoutes,
  objectsByService,
  permitsOf,
  printedRoutes,
  referenceGrants,
} from '../../network/router/core/index.ts';
import { createCertificateVerifier } from '../../network/router/io/index.ts';
import { nodeFiles } from '../../pki/index.ts';
import { loadSettings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, createProcessLog, systemRandom as random } from '../process/process.ts';
import { hostPolicyOf } from './router.ts';

export interface RouteConfigOptions {
  readonly root: string | undefined;
  readonly config: string | undefined;
  /** Directory from which HAProxy reads certificates; undefined disables TLS termination. */
  readonly certificates: string | undefined;
  readonly ca: string | undefined;
}

/** The configuration of HAProxy. Throws CodedErrors if the API server cannot be read. */
export async function routeConfig(options: RouteConfigOptions): Promise<string> {
  const settings = await loadSettings({ root: options.root, config: options.config });
  const log = createProcessLog('haproxy-config', settings.logLevel);
  const files = nodeFiles(settings.root);
  const api = await openClient(files.kubeconfig, 'haproxy-config/hyperedge', { clock, random, log });
  const all = async <T extends KubeObject>(type: ResourceType<T>): Promise<readonly T[]> => {
    try {
      return (await api.client.resource(type).list()).items;
    } catch (error) {
      // The API server may not serve the kinds of the Gateway API.
      if (isApiError(error, 'NotFound')) return [];
      throw error;
    }
  };
  try {
    const [routes, ingresses, ingressClasses, services, slices, foundGateways, foundHttpRoutes, grants] =
      await Promise.all([
        all(resources.routes),
        all(resources.ingresses),
        all(resources.ingressClasses),
        all(resources.services),
        all(resources.endpointSlices),
        all(gateways),
        all(httpRoutes),
        all(referenceGrants),
      ]);
    const { httpPort: http, httpsPort: https } = settings.router;
    return printedRoutes(
      {
        ...objectsByService(services, slices),
        routes,
        ingresses,
        ingressClasses,
        httpRoutes: foundHttpRoutes,
        gateways: foundGateways,
        permits: permitsOf(grants),
        // The certificates are omitted, because HAProxy reads them from its directory.
        certificate: () => ({ certificate: '', key: '' }),
        check: createCertificateVerifier(),
        ports: { http, https },
        policy: hostPolicyOf(settings),
      },
      { certificates: options.certificates, ca: options.ca ?? files.clientCa },
    );
  } finally {
    await api.close();
  }
}
