/** route.openshift.io/v1. Source: openshift/api route/v1 of release 4.10, field names and meaning. */
import { declarePackage } from './declare.ts';

export const routePackage = declarePackage('route.v1', {
  Route: {
    isKind: true,
    about: 'A route exposes a service under a host name, with or without TLS, through the routers of the cluster.',
    fields: {
      spec: ['!#RouteSpec', 'The desired state of the route.'],
      status: ['#RouteStatus', 'State of the route, reported by routers.'],
    },
  },
  RouteSpec: {
    about: 'RouteSpec names the host, the path, the service and the TLS configuration of a route.',
    fields: {
      host: [
        'string',
        'DNS name of the route; generated from name, namespace and the domain of the cluster when empty.',
      ],
      subdomain: ['string', 'Label below the domain of the router; used only when host is empty.'],
      path: ['string', 'Path that requests have to begin with. Not with passthrough termination.'],
      to: ['!#RouteTargetReference', 'The service that receives the requests, with its weight.'],
      alternateBackends: ['[]#RouteTargetReference', 'Up to three more services that share the requests by weight.'],
      port: ['#RoutePort', 'The port of the service; default: all of its ports.'],
      tls: ['#TLSConfig', 'TLS termination; without it the route is served by HTTP only.'],
      wildcardPolicy: ['string', 'None, or Subdomain: the route has all hosts below the parent of its host.'],
    },
  },
  RouteTargetReference: {
    about: 'RouteTargetReference is a service that receives requests.',
    fields: {
      kind: ['!string', 'Kind of the target; only Service is allowed.'],
      name: ['!string', 'Name of the service.'],
      weight: ['int32', 'Share of the requests from 0 to 256, relative to the sum of all; default 100.'],
    },
  },
  RoutePort: {
    about: 'RoutePort selects a port of the endpoints.',
    fields: {
      targetPort: [
        '!int-or-string',
        'Target port of the endpoints, by number or by the name of the port of the service.',
      ],
    },
  },
  TLSConfig: {
    about: 'TLSConfig describes where TLS ends and with which certificates.',
    fields: {
      termination: ['!string', 'edge, passthrough or reencrypt.'],
      certificate: ['string', 'Serving certificate with its chain, PEM; default: the certificate of the router.'],
      key: ['string', 'Private key of the certificate, PEM.'],
      caCertificate: ['string', 'Certificates of the authority of the serving certificate, PEM.'],
      destinationCACertificate: ['string', 'Authority of the certificates of the back ends, PEM; only with reencrypt.'],
      insecureEdgeTerminationPolicy: ['string', 'Handling of HTTP requests: None, Allow or Redirect.'],
    },
  },
  RouteStatus: {
    about: 'RouteStatus is what routers report.',
    fields: { ingress: ['[]#RouteIngress', 'One entry for each router that has seen the route.'] },
  },
  RouteIngress: {
    about: 'RouteIngress is how one router exposes the route.',
    fields: {
      host: ['string', 'Host under which the router serves the route.'],
      routerName: ['string', 'Name of the router.'],
      conditions: ['[]#RouteIngressCondition', 'State of the route in the router; type Admitted.'],
      wildcardPolicy: ['string', 'Wildcard policy that the router allowed.'],
      routerCanonicalHostname: ['string', 'External host name of the router, for CNAME records.'],
    },
  },
  RouteIngressCondition: {
    about: 'RouteIngressCondition is one aspect of the state of a route.',
    fields: {
      type: ['!string', 'Admitted.'],
      status: ['!string', 'True, False or Unknown.'],
      reason: ['string', 'One word for programs, such as HostAlreadyClaimed.'],
      message: ['string', 'Text for people.'],
      lastTransitionTime: ['date-time', 'When the status changed last.'],
    },
  },
});
