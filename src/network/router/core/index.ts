export { Balancer } from './balance.ts';
export { type CertificateCheck, certificateOf } from './certificate-check.ts';
export { CLAIMS_BY_KIND, HOST_CLAIMS, recordedClaims } from './claim-times.ts';
export { type HostPolicy, reservation } from './claims.ts';
export { gatewayDefinitions } from './gateways/gateway-crds.ts';
export { gatewayStatus, httpRouteStatus, sameStatus } from './gateways/gateway-status.ts';
export {
  attachments,
  type Gateway,
  gatewayClasses,
  gateways,
  type HttpRoute,
  httpRoutes,
  isOwnGateway,
  unpermittedBackend,
} from './gateways/gateways.ts';
export { certificateProblem, secretsOfGateway } from './gateways/listeners.ts';
export { permitsOf, type ReferenceGrant, referenceGrants } from './gateways/reference-grants.ts';
export { isServed, ROUTER_CLASS, ROUTER_CONTROLLER, secretsOf } from './ingresses.ts';
export { planRouting, type RoutingInput, type RoutingPlan, routingSteps } from './plan.ts';
export { objectsByService, printedRoutes } from './printed.ts';
export { type Rejection, routeId } from './routes.ts';
export type { RoutingTable } from './routing-table.ts';
export { planRouteStatus } from './status.ts';
