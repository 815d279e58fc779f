/** `status.ingress` of routes. Source: openshift/router pkg/router/controller/status.go; `oc get route -o yaml`. */
import type { Route, RouteIngress } from '../kinds/routes/types.ts';
import type { Rejection } from './routes.ts';

export const ROUTER_NAME = 'default';

export const canonicalHostname = (domain: string): string => `router-${ROUTER_NAME}.${domain}`;

/**
 * The desired `status.ingress` of the route; undefined if unchanged. `now` is RFC 3339. Entries of other routers are
 * kept.
 */
export function planRouteStatus(
  route: Route,
  rejection: Rejection | undefined,
  domain: string,
  now: string,
): RouteIngress[] | undefined {
  const present = route.status?.ingress ?? [];
  const own = present.find(({ routerName }) => routerName === ROUTER_NAME);
  const condition = own?.conditions?.find(({ type }) => type === 'Admitted');
  const wanted = {
    type: 'Admitted',
    status: rejection === undefined ? 'True' : 'False',
    ...(rejection === undefined ? {} : { reason: rejection.reason, message: rejection.message }),
  };
  const entry = {
    host: route.spec?.host ?? '',
    routerName: ROUTER_NAME,
    wildcardPolicy: route.spec?.wildcardPolicy ?? 'None',
    routerCanonicalHostname: canonicalHostname(domain),
  };
  const isCurrent =
    own !== undefined &&
    own.host === entry.host &&
    own.wildcardPolicy === entry.wildcardPolicy &&
    own.routerCanonicalHostname === entry.routerCanonicalHostname &&
    condition?.status === wanted.status &&
    (condition.reason ?? '') === (rejection?.reason ?? '') &&
    (condition.message ?? '') === (rejection?.message ?? '');
  if (isCurrent) return undefined;
  const lastTransitionTime =
    condition?.status === wanted.status && condition.reason === rejection?.reason
      ? (condition?.lastTransitionTime ?? now)
      : now;
  const others = present.filter(({ routerName }) => routerName !== ROUTER_NAME);
  return [{ ...entry, conditions: [{ ...wanted, lastTransitionTime }] }, ...others];
}
