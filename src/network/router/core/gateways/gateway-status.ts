/** Conditions of Gateways and HTTP routes. Source: gateway-api.sigs.k8s.io, "Status". */
import type { KubeObject } from '../../../../api/meta/object.ts';
import { ROUTER_CONTROLLER } from '../ingresses.ts';
import type { Attachment, Gateway, HttpRoute } from './gateways.ts';
import { type CertificateProblem, listenerProblem } from './listeners.ts';
import type { Permits } from './reference-grants.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime?: string;
}

/** Whether two statuses are equal apart from their transition times. */
export function sameStatus(present: unknown, wanted: unknown): boolean {
  const timeless = (value: unknown): string =>
    JSON.stringify(value, (key, each: unknown) => (key === 'lastTransitionTime' ? undefined : each));
  return timeless(present) === timeless(wanted);
}

const condition = (
  object: KubeObject,
  type: string,
  status: 'True' | 'False',
  reason: string,
  message: string,
): Condition => ({
  type,
  status,
  reason,
  message,
  observedGeneration: object.metadata?.generation ?? 0,
});

/**
 * @param attached Number of routes by listener name.
 * @param now RFC 3339.
 */
export function gatewayStatus(
  gateway: Gateway,
  addresses: readonly string[],
  attached: (listener: string) => number,
  { permits, certificates }: { readonly permits: Permits; readonly certificates: CertificateProblem },
  now: string,
): object {
  const listeners = (gateway.spec?.listeners ?? []).map((listener) => {
    const { name = '' } = listener;
    const problem = listenerProblem(gateway, listener, permits, certificates);
    const judged = (type: 'Accepted' | 'ResolvedRefs'): Condition =>
      problem?.condition === type
        ? condition(gateway, type, 'False', problem.reason, problem.message)
        : condition(gateway, type, 'True', type, '');
    const conditions = [
      judged('Accepted'),
      condition(
        gateway,
        'Programmed',
        problem === undefined ? 'True' : 'False',
        problem === undefined ? 'Programmed' : 'Invalid',
        '',
      ),
      judged('ResolvedRefs'),
    ];
    return {
      name,
      supportedKinds: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }],
      attachedRoutes: attached(name),
      conditions: conditions.map((each) => ({ ...each, lastTransitionTime: now })),
    };
  });
  const areValid = listeners.every(({ conditions }) => conditions.every(({ status }) => status === 'True'));
  return {
    addresses: addresses.map((value) => ({ type: 'IPAddress', value })),
    conditions: [
      condition(gateway, 'Accepted', 'True', areValid ? 'Accepted' : 'ListenersNotValid', ''),
      condition(gateway, 'Programmed', 'True', 'Programmed', ''),
    ].map((each) => ({ ...each, lastTransitionTime: now })),
    listeners,
  };
}

/** @param refused The route's hosts belong to another namespace. */
export function httpRouteStatus(
  route: HttpRoute,
  attachments: readonly Attachment[],
  refused: string | undefined,
  /** Name of a back end in another namespace that no ReferenceGrant permits; undefined if there is none. */
  unpermitted: string | undefined,
  now: string,
): NonNullable<HttpRoute['status']> {
  const others = (route.status?.parents ?? []).filter(({ controllerName }) => controllerName !== ROUTER_CONTROLLER);
  const own = attachments.map(({ parent, refusal }) => {
    const why = refusal ?? (refused === undefined ? undefined : { reason: 'HostAlreadyClaimed', message: refused });
    const conditions = [
      condition(route, 'Accepted', why === undefined ? 'True' : 'False', why?.reason ?? 'Accepted', why?.message ?? ''),
      unpermitted === undefined
        ? condition(route, 'ResolvedRefs', 'True', 'ResolvedRefs', '')
        : condition(
            route,
            'ResolvedRefs',
            'False',
            'RefNotPermitted',
            `no ReferenceGrant permits service ${unpermitted}`,
          ),
    ];
    return {
      parentRef: parent,
      controllerName: ROUTER_CONTROLLER,
      conditions: conditions.map((each) => ({ ...each, lastTransitionTime: now })),
    };
  });
  return { parents: [...own, ...others] };
}
