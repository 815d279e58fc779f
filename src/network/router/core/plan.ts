/**
 * Computes the routing table and the status of all objects. Every host and the leader's controller get the same result.
 */
import type { Ingress, IngressClass } from '../../../api/generated/networking/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import type { Route } from '../kinds/routes/types.ts';
import type { CertificateCheck } from './certificate-check.ts';
import { HostClaims, type HostPolicy } from './claims.ts';
import { type Gateway, type HttpRoute, rowsOfHttpRoute } from './gateways/gateways.ts';
import { certificateProblem, refusedNames } from './gateways/listeners.ts';
import type { Permits } from './gateways/reference-grants.ts';
import { type IngressSource, isServed, rowsOfIngress } from './ingresses.ts';
import { hostProblem, type Rejection, routeId, rowOfRoute } from './routes.ts';
import { type Age, compareAges, type Row } from './rows.ts';
import { type Ports, RoutingTable } from './table.ts';

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
  /** Rejections by `route/NAMESPACE/NAME`. Absent routes are admitted. */
  readonly rejected: ReadonlyMap<string, Rejection>;
  /** Ingresses and HTTP routes with a host that belongs to another namespace, by ID. */
  readonly refused: ReadonlyMap<string, string>;
}

export function planRouting(input: RoutingInput): RoutingPlan {
  const rejected = new Map<string, Rejection>();
  const refused = new Map<string, string>();
  const rows: Row[] = [];
  const gateways = new Map(input.gateways.map((each) => [objectKey(each), each]));
  const certificates = certificateProblem(input);
  const source = { ...input, gateway: (key: string) => gateways.get(key), certificates };
  const claims = new HostClaims(input.policy);
  const found: { readonly age: Age; readonly add: () => void }[] = [];
  for (const route of input.routes) {
    const id = routeId(route);
    const problem = hostProblem(route) ?? wildcardProblem(route, input.policy);
    if (problem !== undefined) {
      rejected.set(id, problem);
      continue;
    }
    const { row, problems } = rowOfRoute(route, input, input.check);
    const add = (): void => {
      const claimed = claims.claim(row, true);
      // A route that fails validation keeps its host, as with OpenShift's router.
      const [first] = problems;
      if (claimed !== undefined) rejected.set(id, { reason: 'HostAlreadyClaimed', message: claimed });
      else if (first === undefined) rows.push(row);
      else rejected.set(id, { reason: 'ExtendedValidationFailed', message: first });
    };
    found.push({ age: row.age, add });
  }
  const addRow = (row: Row): void => {
    const claimed = claims.claim(row, false);
    if (claimed === undefined) rows.push(row);
    else refused.set(row.backend.id, claimed);
  };
  const others = [
    ...input.ingresses
      .filter((ingress) => isServed(ingress, input.ingressClasses))
      .flatMap((ingress) => rowsOfIngress(ingress, input)),
    ...input.httpRoutes.flatMap((route) => rowsOfHttpRoute(route, source)),
  ];
  for (const row of others) found.push({ age: row.age, add: () => addRow(row) });
  for (const each of found.sort((a, b) => compareAges(a.age, b.age))) each.add();
  const withoutTls = new Set(input.gateways.flatMap((each) => refusedNames(each, input.permits, certificates)));
  return { table: new RoutingTable(rows, input.ports, withoutTls, (host) => claims.ownerOf(host)), rejected, refused };
}

function wildcardProblem({ spec }: Route, { wildcardRoutes }: HostPolicy): Rejection | undefined {
  if (spec?.wildcardPolicy !== 'Subdomain' || wildcardRoutes) return undefined;
  return { reason: 'RouteNotAdmitted', message: 'wildcard routes are not allowed; set openshift.wildcardRoutes' };
}
