/** Routes. Source: openshift/openshift-apiserver pkg/route/apiserver/registry/route; columns of `oc get route`. */
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import type { Route } from './types.ts';
import { validateRoute, validateRouteUpdate } from './validation.ts';

const DEFAULT_WEIGHT = 100;

const { strategy, statusStrategy } = specStatusStrategies<Route>({
  generations: false,
  validate: validateRoute,
  validateUpdate: validateRouteUpdate,
});

/** Sets default values. Source: openshift/openshift-apiserver pkg/route/apis/route/v1/defaults.go. */
function setDefaults({ spec, status }: Route): void {
  if (spec === undefined) return;
  spec.wildcardPolicy ||= 'None';
  for (const target of [spec.to, ...(spec.alternateBackends ?? [])]) {
    if (target === undefined) continue;
    target.kind ||= 'Service';
    target.weight ??= DEFAULT_WEIGHT;
  }
  if (spec.tls !== undefined && !spec.tls.termination && !spec.tls.destinationCACertificate)
    spec.tls.termination = 'edge';
  for (const ingress of status?.ingress ?? []) ingress.wildcardPolicy ||= 'None';
}

function hostText({ spec, status }: Route): string {
  const admitted = (status?.ingress ?? []).filter((each) =>
    (each.conditions ?? []).some((condition) => condition.type === 'Admitted' && condition.status === 'True'),
  );
  const rejected = (status?.ingress ?? [])
    .flatMap((each) => each.conditions ?? [])
    .find((condition) => condition.type === 'Admitted' && condition.status === 'False');
  if (admitted.length === 0 && rejected?.reason) return rejected.reason;
  const host = admitted[0]?.host ?? spec?.host ?? '';
  return admitted.length > 1 ? `${host} ... ${admitted.length - 1} more` : host;
}

function servicesText({ spec }: Route): string {
  const targets = [spec?.to ?? {}, ...(spec?.alternateBackends ?? [])];
  if (targets.length === 1) return targets[0]?.name ?? '';
  const sum = targets.reduce((total, each) => total + (each.weight ?? DEFAULT_WEIGHT), 0);
  const share = (weight = DEFAULT_WEIGHT): number => (sum === 0 ? 0 : Math.floor((weight * 100) / sum));
  return targets.map((each) => `${each.name}(${share(each.weight)}%)`).join(',');
}

function terminationText({ spec }: Route): string {
  const { termination, insecureEdgeTerminationPolicy: insecure } = spec?.tls ?? {};
  return [termination, insecure].filter(Boolean).join('/');
}

export const routes: KindDefinition<Route> = {
  group: 'route.openshift.io',
  version: 'v1',
  kind: 'Route',
  plural: 'routes',
  singular: 'route',
  listKind: 'RouteList',
  namespaced: true,
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.route.v1.Route',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/routes',
  setDefaults,
  strategy,
  statusStrategy,
  fieldSelectors: {
    'spec.host': (route) => route.spec?.host ?? '',
    'spec.path': (route) => route.spec?.path ?? '',
    'spec.to.name': (route) => route.spec?.to?.name ?? '',
  },
  columns: [
    nameColumn,
    column<Route>('Host/Port', 'Where the route is reached.', hostText),
    column<Route>('Path', 'Path that requests begin with.', ({ spec }) => spec?.path ?? ''),
    column<Route>('Services', 'Services behind the route.', servicesText),
    column<Route>('Port', 'Target port of the services.', ({ spec }) => String(spec?.port?.targetPort ?? '<all>')),
    column<Route>('Termination', 'Where TLS ends.', terminationText),
    column<Route>('Wildcard', 'Wildcard policy.', ({ spec }) => spec?.wildcardPolicy || 'None'),
  ],
};
