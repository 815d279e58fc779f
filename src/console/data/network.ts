/** Addresses of routes and ingresses, and descriptions of network policies. */

import type { LabelSelector } from '../../api/generated/meta/v1.ts';
import type { Ingress, NetworkPolicy } from '../../api/generated/networking/v1.ts';
import { type AnyObject, fieldAt, textAt } from './api/resources.ts';

export function routeUrl(route: AnyObject): string {
  const host = textAt(route, 'spec', 'host');
  if (host === '') return '';
  return `${fieldAt(route, 'spec', 'tls') === undefined ? 'http' : 'https'}://${host}${textAt(route, 'spec', 'path')}`;
}

export function urlsOfIngress({ spec }: Ingress): readonly string[] {
  const secure = new Set((spec?.tls ?? []).flatMap(({ hosts }) => hosts ?? []));
  return (spec?.rules ?? []).flatMap(({ host, http }) =>
    (http?.paths ?? []).map(({ path = '/' }) =>
      host === undefined ? `any host${path}` : `${secure.has(host) ? 'https' : 'http'}://${host}${path}`,
    ),
  );
}

type Peer = NonNullable<NonNullable<NonNullable<NetworkPolicy['spec']>['ingress']>[number]['from']>[number];

/** Description such as `Pods with app=db accept traffic from pods with app=web; send traffic to everywhere.` */
export function policyText({ spec }: NetworkPolicy): string {
  const types = spec?.policyTypes ?? ['Ingress'];
  const parts: string[] = [];
  if (types.includes('Ingress'))
    parts.push(`accept traffic from ${rulesText((spec?.ingress ?? []).map(({ from }) => from))}`);
  if (types.includes('Egress')) parts.push(`send traffic to ${rulesText((spec?.egress ?? []).map(({ to }) => to))}`);
  return `${capital(selectorText('pods', spec?.podSelector))} ${parts.join(' and ')}.`;
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

function rulesText(rules: readonly (readonly Peer[] | undefined)[]): string {
  if (rules.length === 0) return 'nowhere';
  if (rules.some((peers) => peers === undefined || peers.length === 0)) return 'everywhere';
  return rules.flatMap((peers) => (peers ?? []).map(peerText)).join(', ');
}

function peerText({ ipBlock, namespaceSelector, podSelector }: Peer): string {
  if (ipBlock !== undefined) {
    const except = ipBlock.except ?? [];
    return `${ipBlock.cidr}${except.length === 0 ? '' : ` except ${except.join(', ')}`}`;
  }
  const pods = selectorText('pods', podSelector);
  return namespaceSelector === undefined ? pods : `${pods} of ${selectorText('namespaces', namespaceSelector)}`;
}

function selectorText(kind: string, selector: LabelSelector | undefined): string {
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector?.matchExpressions ?? []).map(({ key, operator, values }) =>
    `${key} ${operator} ${(values ?? []).join('|')}`.trim(),
  );
  const all = [...labels, ...expressions];
  return all.length === 0 ? `all ${kind}` : `${kind} with ${all.join(', ')}`;
}
