/** Services. The API server allocates addresses and node ports. Source: k8s.io/kubernetes/pkg/registry/core/service. */
import type { Service } from '../../../generated/core/v1.ts';
import { ageColumn, column, labelsText, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { alignClusterIps, dropForOtherType, keepAllocated, setServiceDefaults } from './defaults.ts';
import { validateService, validateServiceStatus, validateServiceUpdate } from './validation.ts';
import { serviceWarnings } from './warnings.ts';

const { strategy, statusStrategy } = specStatusStrategies<Service>({
  generations: false,
  initialStatus: () => ({ loadBalancer: {} }),
  prepareForCreate(service) {
    const spec = service.spec;
    if (spec === undefined) return;
    // clusterIP equals clusterIPs[0]; a client may send either.
    if (spec.clusterIP && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP];
    else if (!spec.clusterIP && spec.clusterIPs?.[0]) spec.clusterIP = spec.clusterIPs[0];
  },
  prepareForUpdate(service, old) {
    alignClusterIps(service, old);
    keepAllocated(service, old);
    dropForOtherType(service, old);
    if (service.spec?.type !== 'LoadBalancer' && service.status !== undefined) service.status.loadBalancer = {};
    const spec = service.spec;
    if (spec?.clusterIP && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP];
  },
  validate: validateService,
  validateUpdate: validateServiceUpdate,
  validateStatusUpdate: validateServiceStatus,
  warnings: serviceWarnings,
});

function externalText(service: Service): string {
  const spec = service.spec;
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ExternalName':
      return spec.externalName || NONE;
    case 'LoadBalancer': {
      const ingress = (service.status?.loadBalancer?.ingress ?? []).map((each) => each.ip || each.hostname || '');
      const all = [...ingress.filter((each) => each !== ''), ...external];
      return all.length === 0 ? '<pending>' : all.join(',');
    }
    default:
      return external.length === 0 ? NONE : external.join(',');
  }
}

function portsText(service: Service): string {
  const ports = (service.spec?.ports ?? []).map((port) =>
    (port.nodePort ?? 0) > 0 ? `${port.port}:${port.nodePort}/${port.protocol}` : `${port.port}/${port.protocol}`,
  );
  return ports.length === 0 ? NONE : ports.join(',');
}

export const services: KindDefinition<Service> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  listKind: 'ServiceList',
  namespaced: true,
  shortNames: ['svc'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Service',
  skeleton: { spec: {}, status: { loadBalancer: {} } },
  returnsDeleted: true,
  storagePrefix: 'services/specs',
  nameRule: 'dns1035Label',
  allowCreateOnUpdate: true,
  setDefaults: setServiceDefaults,
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Service>('Type', 'Type of the service.', (service) => service.spec?.type ?? ''),
    column<Service>(
      'Cluster-IP',
      'The address of the service inside the cluster.',
      (service) => service.spec?.clusterIPs?.[0] || service.spec?.clusterIP || NONE,
    ),
    column<Service>('External-IP', 'Addresses of the service outside the cluster.', externalText),
    column<Service>('Port(s)', 'The ports of the service, with node ports.', portsText),
    ageColumn,
    column<Service>(
      'Selector',
      'The labels of the pods behind the service.',
      (service) => labelsText(service.spec?.selector),
      {
        wide: true,
      },
    ),
  ],
  fieldSelectors: {
    'spec.clusterIP': (service) => service.spec?.clusterIP ?? '',
    'spec.type': (service) => service.spec?.type ?? '',
  },
  extraSubresources: [
    { name: 'proxy', kind: 'ServiceProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
  ],
};
