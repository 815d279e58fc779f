/** Conditions of Gateways and HTTP routes. Source: gateway-api.sigs.k8s.io, "Status". */
import type { KubeObject } from '../../api/meta/object.ts';
import type { Attachment, Gateway, HttpRoute } from './gateways.ts';
import { ROUTER_CONTROLLER } from './ingresses.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime?: string;
}

/** Equal but for the times of transitions. */
export function sameStatus(present: unknown, wanted: unknown): boolean {
  const timeless = (value: unknown): string =>
    JSON.stringify(value, (key, each: unknown) => (key === 'lastTransitionTime' ? undefined : each));
  return timeless(present) === timeless(wanted);
}

const condition = (object: KubeObject, type: string, status: boolean, reason: string, message: string): Condition => ({
  type,
  status: status ? 'True' : 'False',
  reason,
  message,
  observedGeneration: object.metadata?.generation ?? 0,
});

/** `attached`: routes by the name of the listener. `now` in RFC 3339. */
export function gatewayStatus(
  gateway: Gateway,
  addresses: readonly string[],
  attached: (listener: string) => number,
  now: string,
): object {
  const listeners = (gateway.spec?.listeners ?? []).map(({ name = '', protocol }) => {
    const isServed = protocol === 'HTTP' || protocol === 'HTTPS';
    const conditions = isServed
      ? [
          condition(gateway, 'Accepted', true, 'Accepted', ''),
          condition(gateway, 'Programmed', true, 'Programmed', ''),
          condition(gateway, 'ResolvedRefs', true, 'ResolvedRefs', ''),
        ]
      : [
          condition(gateway, 'Accepted', false, 'UnsupportedProtocol', `${protocol} is not served; use HTTP or HTTPS`),
          condition(gateway, 'Programmed', false, 'Invalid', ''),
        ];
    return {
      name,
      supportedKinds: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }],
      attachedRoutes: attached(name),
      conditions: conditions.map((each) => ({ ...each, lastTransitionTime: now })),
    };
  });
  return {
    addresses: addresses.map((value) => ({ type: 'IPAddress', value })),
    conditions: [
      condition(gateway, 'Accepted', true, 'Accepted', ''),
      condition(gateway, 'Programmed', true, 'Programmed', ''),
    ].map((each) => ({ ...each, lastTransitionTime: now })),
    listeners,
  };
}

/** `refused`: the route's hosts belong to another namespace. */
export function httpRouteStatus(
  route: HttpRoute,
  attachments: readonly Attachment[],
  refused: string | undefined,
  now: string,
): NonNullable<HttpRoute['status']> {
  const others = (route.status?.parents ?? []).filter(({ controllerName }) => controllerName !== ROUTER_CONTROLLER);
  const own = attachments.map(({ parent, refusal }) => {
    const why = refusal ?? (refused === undefined ? undefined : { reason: 'HostAlreadyClaimed', message: refused });
    const conditions = [
      condition(route, 'Accepted', why === undefined, why?.reason ?? 'Accepted', why?.message ?? ''),
      condition(route, 'ResolvedRefs', true, 'ResolvedRefs', ''),
    ];
    return {
      parentRef: parent,
      controllerName: ROUTER_CONTROLLER,
      conditions: conditions.map((each) => ({ ...each, lastTransitionTime: now })),
    };
  });
  return { parents: [...own, ...others] };
}
