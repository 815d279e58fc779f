/** Ingresses. Source: k8s.io/kubernetes/pkg/registry/networking/ingress, pkg/printers/internalversion. */
import type { Ingress } from '../../../generated/networking/v1.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { olderIngress } from './conversion.ts';
import { INGRESS_CLASS_ANNOTATION, validateIngress, validateIngressStatus, validateNewIngress } from './validation.ts';

const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const { strategy, statusStrategy } = specStatusStrategies<Ingress>({
  initialStatus: () => ({ loadBalancer: {} }),
  validate: validateIngress,
  validateCreate: validateNewIngress,
  validateStatusUpdate: validateIngressStatus,
  warnings(ingress, old) {
    const annotated = ingress.metadata?.annotations?.[CLASS_ANNOTATION] !== undefined;
    if (old !== undefined || !annotated || ingress.spec?.ingressClassName !== undefined) return [];
    return [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`];
  },
});

const MAX_HOSTS = 3;

function classText(ingress: Ingress): string {
  const annotation = ingress.metadata?.annotations?.[INGRESS_CLASS_ANNOTATION];
  return ingress.spec?.ingressClassName ?? annotation ?? NONE;
}

function hostsText(ingress: Ingress): string {
  const hosts = (ingress.spec?.rules ?? []).map((rule) => rule.host || '*');
  if (hosts.length === 0) return '*';
  const shown = hosts.slice(0, MAX_HOSTS).join(',');
  return hosts.length > MAX_HOSTS ? `${shown} + ${hosts.length - MAX_HOSTS} more...` : shown;
}

function addressText(ingress: Ingress): string {
  const addresses = (ingress.status?.loadBalancer?.ingress ?? []).map((each) => each.ip || each.hostname || '');
  return [...new Set(addresses.filter((each) => each !== ''))].sort().join(',');
}

export const ingresses: KindDefinition<Ingress> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  plural: 'ingresses',
  singular: 'ingress',
  listKind: 'IngressList',
  namespaced: true,
  shortNames: ['ing'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.networking.v1.Ingress',
  skeleton: { spec: {}, status: { loadBalancer: {} } },
  storagePrefix: 'ingress',
  aliases: [olderIngress('networking.k8s.io', '1.19'), olderIngress('extensions', '1.14')],
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Ingress>('Class', 'Class of the ingress.', classText),
    column<Ingress>('Hosts', 'The hosts that have rules.', hostsText),
    column<Ingress>('Address', 'Addresses of the ingress.', addressText),
    column<Ingress>('Ports', 'Ports of the ingress.', (ingress) =>
      (ingress.spec?.tls ?? []).length > 0 ? '80, 443' : '80',
    ),
    ageColumn,
  ],
};
