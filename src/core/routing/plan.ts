/** Objects in, routing table and verdicts out. Each host and the leader's controller come to the same result. */
import type { Ingress, IngressClass } from 'kubernetes-types/networking/v1';
import type { Route } from '../../api/kinds/routes/types.ts';
import { objectKey } from '../../api/meta/object.ts';
import type { CertificateCheck } from './certificate-check.ts';
import { type Gateway, type HttpRoute, rowsOfHttpRoute } from './gateways.ts';
import { type IngressSource, isServed, rowsOfIngress } from './ingresses.ts';
import { certificateProblem, refusedNames } from './listeners.ts';
import type { Permits } from './reference-grants.ts';
import { hostProblem, type Rejection, routeId, rowOfRoute } from './routes.ts';
import { ageOf, compareAges, type Row } from './rows.ts';
import { type Ports, RoutingTable } from './table.ts';

export interface RoutingInput extends IngressSource {
  readonly routes: readonly Route[];
  readonly ingresses: readonly Ingress[];
  readonly ingressClasses: readonly IngressClass[];
  readonly httpRoutes: readonly HttpRoute[];
  /** Of this router's class. */
  readonly gateways: readonly Gateway[];
  /** Of ReferenceGrants. */
  readonly permits: Permits;
  readonly check: CertificateCheck;
  readonly ports: Ports;
}

export interface RoutingPlan {
  readonly table: RoutingTable;
  /** By `route/NAMESPACE/NAME`; routes that are missing are admitted. */
  readonly rejected: ReadonlyMap<string, Rejection>;
  /** Ingresses and HTTP routes of which a host belongs to another namespace, by id. */
  readonly refused: ReadonlyMap<string, string>;
}

export function planRouting(input: RoutingInput): RoutingPlan {
  const rejected = new Map<string, Rejection>();
  const refused = new Map<string, string>();
  const rows: Row[] = [];
  const gateways = new Map(input.gateways.map((each) => [objectKey(each), each]));
  const certificates = certificateProblem(input);
  const source = { ...input, gateway: (key: string) => gateways.get(key), certificates };
  const claims = new HostClaims();
  const found = [
    ...input.routes.map((route) => ({ age: ageOf(route), add: () => addRoute(route) })),
    ...input.ingresses
      .filter((ingress) => isServed(ingress, input.ingressClasses))
      .map((ingress) => ({ age: ageOf(ingress), add: () => addAll(rowsOfIngress(ingress, input)) })),
    ...input.httpRoutes.map((route) => ({ age: ageOf(route), add: () => addAll(rowsOfHttpRoute(route, source)) })),
  ];
  const addRoute = (route: Route): void => {
    const id = routeId(route);
    const problem = hostProblem(route);
    if (problem !== undefined) {
      rejected.set(id, problem);
      return;
    }
    const { row, problems } = rowOfRoute(route, input, input.check);
    const claimed = claims.claim(row, true);
    if (claimed !== undefined) {
      rejected.set(id, { reason: 'HostAlreadyClaimed', message: claimed });
      return;
    }
    // A route that fails validation keeps its host, as with OpenShift's router.
    const [first] = problems;
    if (first === undefined) rows.push(row);
    else rejected.set(id, { reason: 'ExtendedValidationFailed', message: first });
  };
  const addAll = (all: readonly Row[]): void => {
    for (const row of all) {
      const claimed = claims.claim(row, false);
      if (claimed === undefined) rows.push(row);
      else refused.set(row.backend.id, claimed);
    }
  };
  for (const each of found.sort((a, b) => compareAges(a.age, b.age))) each.add();
  const withoutTls = new Set(input.gateways.flatMap((each) => refusedNames(each, input.permits, certificates)));
  return { table: new RoutingTable(rows, input.ports, withoutTls), rejected, refused };
}

interface Claim {
  readonly namespace: string;
  readonly key: string;
}

/**
 * The oldest object owns a host for its namespace; other objects of the namespace share it by path. A wildcard owns the
 * names one label below its domain.
 */
class HostClaims {
  readonly #hosts = new Map<string, Claim>();
  readonly #wildcards = new Map<string, Claim>();
  /** By domain: owners of a name one label below it. */
  readonly #below = new Map<string, Claim>();
  readonly #paths = new Map<string, Claim>();

  /** Why `row` does not get its host; undefined: it has it now. */
  claim({ backend, host, wildcard, path, age }: Row, isRoute: boolean): string | undefined {
    const { namespace } = backend;
    const mine: Claim = { namespace, key: age.key };
    if (host === '') return undefined;
    const parent = host.slice(host.indexOf('.') + 1);
    const rivals =
      wildcard === 'none'
        ? [this.#hosts.get(host), this.#wildcards.get(parent)]
        : [this.#wildcards.get(host), this.#below.get(host)];
    const rival = rivals.find((each) => each !== undefined && each.namespace !== namespace);
    if (rival !== undefined) return `a route in another namespace holds ${backend.host} and is older than ${age.key}`;
    if (isRoute) {
      const place = `${wildcard} ${host} ${path.value === '/' ? '' : path.value}`;
      const taken = this.#paths.get(place);
      if (taken !== undefined) return `route ${taken.key} already exposes ${backend.host}${path.value} and is older`;
      this.#paths.set(place, mine);
    }
    if (wildcard === 'none') {
      if (!this.#hosts.has(host)) this.#hosts.set(host, mine);
      // One owner is enough: a wildcard of its namespace is checked against the others by their hosts.
      const known = this.#below.get(parent);
      if (known === undefined) this.#below.set(parent, mine);
      else if (known.namespace !== namespace) this.#below.set(parent, { namespace: '', key: known.key });
    } else if (!this.#wildcards.has(host)) this.#wildcards.set(host, mine);
    return undefined;
  }
}
