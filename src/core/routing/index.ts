export { Balancer } from './balance.ts';
export { type Attachment, attachments, type Gateway, type HttpRoute, type Listener } from './gateways.ts';
export { isServed, ROUTER_CLASS, ROUTER_CONTROLLER, secretsOf } from './ingresses.ts';
export { planRouting, type RoutingInput, type RoutingPlan } from './plan.ts';
export { type CertificateCheck, hostOf, type Rejection, routeId } from './routes.ts';
export { planRouteStatus } from './status.ts';
export type { RoutingTable } from './table.ts';
