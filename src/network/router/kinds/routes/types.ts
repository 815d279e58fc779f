/** Types of route.openshift.io/v1. Source: openshift/api route/v1 of release 4.10. */
import type { KubeObject } from '../../../../api/meta/object.ts';

export interface RouteTarget {
  kind?: string;
  name?: string;
  /** Share of the traffic, 0 to 256. */
  weight?: number;
}

export interface RouteTls {
  termination?: string;
  certificate?: string;
  key?: string;
  caCertificate?: string;
  destinationCACertificate?: string;
  insecureEdgeTerminationPolicy?: string;
}

export interface RouteSpec {
  host?: string;
  subdomain?: string;
  path?: string;
  to?: RouteTarget;
  alternateBackends?: RouteTarget[];
  port?: { targetPort?: number | string };
  tls?: RouteTls;
  wildcardPolicy?: string;
}

export interface RouteCondition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface RouteIngress {
  host?: string;
  routerName?: string;
  conditions?: RouteCondition[];
  wildcardPolicy?: string;
  routerCanonicalHostname?: string;
}

export interface Route extends KubeObject {
  spec?: RouteSpec;
  status?: { ingress?: RouteIngress[] };
}
