/**
 * Computes the routing table and the status of all objects. Every host and the leader's controller get the same result.
 */
import type { Ingress, IngressClass } from '../../../api/generated/networking/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import type { Route } from '../kinds/routes/types.ts';
import type { CertificateCheck } from './certificate-check.ts';
import { HostClaims, type HostPolicy } from './claims.ts';
import { type Gateway, type HttpRoute, rowsOfHttpRoute } from './gateways/gateways.ts';
import { certificateProblem, refusedNames } from './gateways/listeners.ts';
import type { Permits } from './gateways/reference-grants.ts';
import { type IngressSource, isServed, rowsOfIngress } from './ingresses.ts';
import { hostProblem, type Rejection, routeId, rowOfRoute } from './routes.ts';
import { type Ports, RoutingTable } from './routing-table.ts';
import { type Age, compareAges, type Row } from './table-rows.ts';

export interface RoutingInput extends IngressSource {
  readonly routes: readonly Route[];
  readonly ingresses: readonly Ingress[];
  readonly ingressClasses: readonly IngressClass[];
  readonly httpRoutes: readonly HttpRoute[];
  /** Gateways of this router's class. */
  readonly gateways: readonly Gateway[];
  /** Permissions from ReferenceGrants. */
  readonly permits: Permits;
  readonly check: CertificateCheck;
  readonly ports: Ports;
  readonly policy: HostPolicy;
}

export interface RoutingPlan {
  readonly table: RoutingTable;
  /** Rejections by `route/NAMESPACE/NAME`. Routes that are missing here are admitted. */
  readonly rejected: ReadonlyMap<string, Rejection>;
  /** Messages for ingresses and HTTP routes with a host that belongs to another namespace, by ID. */
  readonly refused: ReadonlyMap<string, string>;
}

/** Number of objects or rows that one step of `routingSteps` handles. */
const STEP = 100;

export const planRouting = (input: RoutingInput): RoutingPlan => atOnce(routingSteps(input));

/** Like `planRouting`, but pauses after each step, for inputs with thousands of objects. */
export function* routingSteps(given: RoutingInput): Steps<RoutingPlan> {
  const input: RoutingInput = { ...given, found: new Map() };
  const rejected = new Map<string, Rejection>();
  const refused = new Map<string, string>();
  const rows: Row[] = [];
  const gateways = new Map(input.gateways.map((each) => [objectKey(each), each]));
  const certificates = certificateProblem(input);
  const source = { ...input, gateway: (key: string) => gateways.get(key), certificates };
  const claims = new HostClaims(input.policy);
  const found: { readonly age: Age; readonly add: () => void }[] = [];
  for (const [index, route] of input.routes.entries()) {
    if (index % STEP === STEP - 1) yield;
    const id = routeId(route);
    const problem = hostProblem(route) ?? wildcardProblem(route, input.policy);
    if (problem !== undefined) {
      rejected.set(id, problem);
      continue;
    }
    const { row, problems } = rowOfRoute(route, input, input.check);
    const add = (): void => {
      const claimed = claims.claim(row, { isRoute: true });
      // A route that fails validation keeps its host, as with OpenShift's router.
      const [first] = problems;
      if (claimed !== undefined) rejected.set(id, { reason: 'HostAlreadyClaimed', message: claimed });
      else if (first === undefined) rows.push(row);
      else rejected.set(id, { reason: 'ExtendedValidationFailed', message: first });
    };
    found.push({ age: row.age, add });
  }
  const addRow = (row: Row): void => {
    const claimed = claims.claim(row, { isRoute: false });
    if (claimed === undefined) rows.push(row);
    else refused.set(row.backend.id, claimed);
  };
  const follow = (row: Row): void => void found.push({ age: row.age, add: () => addRow(row) });
  for (const [index, ingress] of input.ingresses.entries()) {
    if (index % STEP === STEP - 1) yield;
    if (isServed(ingress, input.ingressClasses)) rowsOfIngress(ingress, input).forEach(follow);
  }
  for (const [index, route] of input.httpRoutes.entries()) {
    if (index % STEP === STEP - 1) yield;
    rowsOfHttpRoute(route, source).forEach(follow);
  }
  found.sort((a, b) => compareAges(a.age, b.age));
  for (const [index, each] of found.entries()) {
    if (index % STEP === 0) yield;
    each.add();
  }
  const withoutTls = new Set(input.gateways.flatMap((each) => refusedNames(each, input.permits, certificates)));
  return { table: new RoutingTable(rows, input.ports, withoutTls, (host) => claims.ownerOf(host)), rejected, refused };
}

function wildcardProblem({ spec }: Route, { wildcardRoutes }: HostPolicy): Rejection | undefined {
  if (spec?.wildcardPolicy !== 'Subdomain' || wildcardRoutes) return undefined;
  return { reason: 'RouteNotAdmitted', message: 'wildcard routes are not allowed; set openshift.wildcardRoutes' };
}
