/**
 * Singletons of config.openshift.io, created at start with the facts of the cluster. Changes by administrators are
 * kept. Source: openshift/api config/v1; in OpenShift the installer creates them.
 */

import type { KubeObject } from '../../api/meta/object.ts';
import { CONFIG_GROUP, CONFIG_NAME } from '../../openshift/operators/kinds/config/index.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { updateObject } from '../rest/writes/update.ts';
import { ensureObject, ownRequest } from './index.ts';

type OpenshiftConfigContext = WriteContext & Pick<ServerContext, 'services'>;

const DEFAULT_DOMAIN = 'apps.cluster.local';
const APPS = 'apps.';
const NETWORK_TYPE = 'hyperedge';

interface Parts {
  readonly spec: object;
  readonly status?: object;
}

function contents({ config, services }: OpenshiftConfigContext): Readonly<Record<string, Parts>> {
  const { domain = DEFAULT_DOMAIN, clusterNetworks = [], publicUrl, proxy } = config.openshift ?? {};
  const baseDomain = domain.startsWith(APPS) ? domain.slice(APPS.length) : domain;
  const network = {
    clusterNetwork: clusterNetworks.map((each) => ({ ...each })),
    serviceNetwork: [...services.ownRanges],
    networkType: NETWORK_TYPE,
  };
  return {
    apiservers: { spec: { audit: { profile: 'Default' } } },
    authentications: { spec: {} },
    builds: { spec: {} },
    consoles: { spec: {} },
    dnses: { spec: { baseDomain } },
    featuregates: { spec: {} },
    images: { spec: {} },
    infrastructures: {
      spec: { platformSpec: { type: 'None' } },
      status: {
        infrastructureName: baseDomain,
        platform: 'None',
        platformStatus: { type: 'None' },
        apiServerURL: publicUrl ?? '',
        apiServerInternalURI: publicUrl ?? '',
      },
    },
    ingresses: { spec: { domain } },
    networks: { spec: network, status: network },
    oauths: { spec: {} },
    operatorhubs: { spec: { disableAllDefaultSources: true } },
    projects: { spec: {} },
    proxies: {
      spec: {},
      status: proxy === undefined ? {} : { ...proxy, noProxy: proxy.noProxy.join(',') },
    },
    schedulers: { spec: { mastersSchedulable: true } },
  };
}

export async function ensureClusterConfig(context: OpenshiftConfigContext): Promise<void> {
  const wanted = Object.entries(contents(context)).filter(
    // API versions that are switched off have no objects.
    ([plural]) => context.kinds.at(CONFIG_GROUP, 'v1', plural) !== undefined,
  );
  await Promise.all(wanted.map(([plural, parts]) => ensureOne(context, plural, parts)));
}

async function ensureOne(context: OpenshiftConfigContext, plural: string, { spec, status }: Parts): Promise<void> {
  const object = { metadata: { name: CONFIG_NAME }, spec } as KubeObject;
  await ensureObject(context, plural, CONFIG_GROUP, object);
  const request = { ...ownRequest(context, plural, CONFIG_GROUP, '', CONFIG_NAME), subresource: 'status' };
  const strategy = request.kind.definition.statusStrategy;
  const stored = request.kind.cache?.get('', CONFIG_NAME)?.parse<KubeObject & { status?: object }>();
  const isSame = JSON.stringify(stored?.status ?? {}) === JSON.stringify(status);
  if (status === undefined || strategy === undefined || isSame) return;
  await updateObject(context, request, { strategy, next: (current) => ({ ...current, status }) as KubeObject });
}
