/** Singletons of operator.openshift.io, created at start. Changes by administrators are kept. */

import type { KubeObject } from '../../api/meta/object.ts';
import { OPERATOR_GROUP } from '../../openshift/operators/kinds/operator/index.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { ensureObject } from './index.ts';

type OpenshiftOperatorContext = WriteContext & Pick<ServerContext, 'services'>;

const DEFAULT_DOMAIN = 'apps.cluster.local';
const NETWORK_TYPE = 'hyperedge';
const MANAGED = { managementState: 'Managed', logLevel: 'Normal', operatorLogLevel: 'Normal' } as const;

interface Wanted {
  readonly plural: string;
  readonly spec: object;
  readonly name?: string;
  readonly namespace?: string;
}

function contents({ config, services }: OpenshiftOperatorContext): readonly Wanted[] {
  const { domain = DEFAULT_DOMAIN, clusterNetworks = [] } = config.openshift ?? {};
  const network = {
    clusterNetwork: clusterNetworks.map((each) => ({ ...each })),
    serviceNetwork: [...services.ownRanges],
    defaultNetwork: { type: NETWORK_TYPE },
  };
  return [
    ...['authentications', 'configs', 'etcds', 'kubeapiservers', 'kubecontrollermanagers', 'kubeschedulers'].map(
      (plural) => ({ plural, spec: MANAGED }),
    ),
    { plural: 'storages', spec: MANAGED },
    { plural: 'machineconfigurations', spec: MANAGED },
    { plural: 'networks', spec: { ...MANAGED, ...network } },
    { plural: 'dnses', name: 'default', spec: MANAGED },
    { plural: 'ingresscontrollers', namespace: 'openshift-ingress-operator', name: 'default', spec: { domain } },
  ];
}

export async function ensureOperators(context: OpenshiftOperatorContext): Promise<void> {
  const served = contents(context).filter(
    // API versions that are switched off have no objects.
    ({ plural }) => context.kinds.at(OPERATOR_GROUP, 'v1', plural) !== undefined,
  );
  await Promise.all(
    served.map(({ plural, name = 'cluster', namespace, spec }) => {
      const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
      return ensureObject(context, plural, OPERATOR_GROUP, { metadata, spec } as KubeObject);
    }),
  );
}
