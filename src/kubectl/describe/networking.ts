/** Ingresses, network policies, endpoints and addresses in `describe`. Source: the output of kubectl 1.36. */
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { endpointsText } from './endpoints.ts';
import { labelLines, metadataLines, Page, selectorText, tableLines, textsAt } from './page.ts';
import { conditionTable } from './policy.ts';
import type { Related } from './related-facts.ts';

export function describeIngress(object: AnyObject, related: Related): string {
  const addresses = listAt(object, 'status', 'loadBalancer', 'ingress').map(
    (each) => textAt(each, 'ip') || textAt(each, 'hostname'),
  );
  const fallback = fieldAt(object, 'spec', 'defaultBackend');
  const fallbackText = fallback === undefined ? '<default>' : backendText(fallback, related);
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .map('Labels', mapAt(object, 'metadata', 'labels'))
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`)
    .line(0, `Address:\t${[...new Set(addresses.filter((each) => each !== ''))].sort().join(',')}`)
    .required(0, 'Ingress Class', textAt(object, 'spec', 'ingressClassName'))
    .line(0, `Default backend:\t${fallbackText}`);
  const certificates = listAt(object, 'spec', 'tls');
  if (certificates.length > 0) page.line(0, 'TLS:');
  for (const each of certificates) {
    const secret = textAt(each, 'secretName');
    page.line(1, `${secret === '' ? 'SNI routes' : `${secret} terminates`} ${textsAt(each, 'hosts').join(',')}`);
  }
  tableLines(page.line(0, 'Rules:'), 1, ['Host', 'Path', 'Backends'], []);
  const rules = listAt(object, 'spec', 'rules').filter(({ http }) => http !== undefined);
  for (const rule of rules) {
    page.line(1, `${textAt(rule, 'host') || '*'}\t`);
    for (const path of listAt(rule, 'http', 'paths'))
      page.line(2, `\t${textAt(path, 'path')} \t${backendText(path['backend'], related)}`);
  }
  if (rules.length === 0) page.line(1, `*\t*\t${fallbackText}`);
  page.annotations('Annotations', mapAt(object, 'metadata', 'annotations'));
  return page.events(related.events, related.now).toString();
}

function backendText(backend: unknown, { services, endpointSlices }: Related): string {
  const resource = fieldAt(backend, 'resource');
  if (resource !== undefined)
    return `APIGroup: ${textAt(resource, 'apiGroup') || '<none>'}, Kind: ${textAt(resource, 'kind')}, Name: ${textAt(resource, 'name')}`;
  const name = textAt(backend, 'service', 'name');
  const [number, portName] = ['number', 'name'].map((field) => textAt(backend, 'service', 'port', field));
  const text = `${name}:${number || portName}`;
  const service = services.get(name);
  if (service === undefined || service instanceof Error) return `${text} (<error: ${service?.message ?? ''}>)`;
  const port = listAt(service, 'spec', 'ports').find((each) =>
    number ? textAt(each, 'port') === number : textAt(each, 'name') === portName,
  );
  const slices = endpointSlices.filter((each) => each.metadata?.labels?.['kubernetes.io/service-name'] === name);
  return `${text} (${endpointsText(slices, textAt(port, 'name'))})`;
}

export function describeIngressClass(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object).line(0, `Controller:\t${textAt(object, 'spec', 'controller')}`);
  const parameters = fieldAt(object, 'spec', 'parameters');
  if (parameters !== undefined)
    page
      .line(0, 'Parameters:')
      .field(1, 'APIGroup', textAt(parameters, 'apiGroup'))
      .line(1, `Kind:\t${textAt(parameters, 'kind')}`)
      .line(1, `Name:\t${textAt(parameters, 'name')}`);
  return page.events(events, now).toString();
}

export function describeServiceRange(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object).line(0, `CIDRs:\t${textsAt(object, 'spec', 'cidrs').join(', ')}`);
  if (listAt(object, 'status', 'conditions').length > 0) page.line(0, 'Status:');
  conditionTable(page, object);
  return page.events(events, now).toString();
}

export function describeAddress(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object);
  const parent = fieldAt(object, 'spec', 'parentRef');
  if (parent !== undefined) page.line(0, 'Parent Reference:');
  for (const title of parent === undefined ? [] : ['Group', 'Resource', 'Namespace', 'Name'])
    page.line(1, `${title}:\t${textAt(parent, title.toLowerCase())}`);
  return page.events(events, now).toString();
}

interface Direction {
  readonly type: string;
  readonly field: string;
  readonly peers: string;
  readonly title: string;
  readonly restriction: string;
}

const DIRECTIONS: readonly Direction[] = [
  { type: 'Ingress', field: 'ingress', peers: 'from', title: 'From', restriction: 'source' },
  { type: 'Egress', field: 'egress', peers: 'to', title: 'To', restriction: 'destination' },
];

export function describeNetworkPolicy(object: AnyObject): string {
  const created = new Date(object.metadata?.creationTimestamp ?? '');
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`)
    .line(0, `Created on:\t${goTime(created)}`);
  const selected = selectorText(fieldAt(object, 'spec', 'podSelector'));
  const everything = ' (Allowing the specific traffic to all pods in this namespace)';
  labelLines(page, object)
    .line(0, 'Spec:')
    .line(1, `PodSelector:     ${selected}${selected === '<none>' ? everything : ''}`);
  const types = textsAt(object, 'spec', 'policyTypes');
  for (const direction of DIRECTIONS) {
    const name = direction.type.toLowerCase();
    page.line(1, types.includes(direction.type) ? `Allowing ${name} traffic:` : `Not affecting ${name} traffic`);
    if (types.includes(direction.type)) policyRules(page, listAt(object, 'spec', direction.field), direction);
  }
  return page.line(1, `Policy Types: ${types.join(', ') || '<none>'}`).toString();
}

function policyRules(page: Page, rules: readonly object[], { type, peers, title, restriction }: Direction): void {
  if (rules.length === 0) page.line(2, `<none> (Selected pods are isolated for ${type.toLowerCase()} connectivity)`);
  for (const [index, rule] of rules.entries()) {
    if (index > 0) page.line(2, '----------');
    const ports = listAt(rule, 'ports');
    if (ports.length === 0) page.line(2, 'To Port: <any> (traffic allowed to all ports)');
    for (const port of ports) {
      const [first, last] = [textAt(port, 'port') || '<nil>', textAt(port, 'endPort')];
      const protocol = textAt(port, 'protocol') || 'TCP';
      page.line(2, last === '' ? `To Port: ${first}/${protocol}` : `To Port Range: ${first}-${last}/${protocol}`);
    }
    const list = listAt(rule, peers);
    if (list.length === 0) page.line(2, `${title}: <any> (traffic not restricted by ${restriction})`);
    for (const peer of list) peerLines(page.line(2, `${title}:`), peer);
  }
}

function peerLines(page: Page, peer: Record<string, unknown>): void {
  for (const title of ['NamespaceSelector', 'PodSelector']) {
    const selector = peer[title.charAt(0).toLowerCase() + title.slice(1)];
    if (selector !== undefined) page.line(3, `${title}: ${selectorText(selector)}`);
  }
  if (peer['ipBlock'] !== undefined)
    page
      .line(3, 'IPBlock:')
      .line(4, `CIDR: ${textAt(peer, 'ipBlock', 'cidr')}`)
      .line(4, `Except: ${textsAt(peer, 'ipBlock', 'except').join(', ')}`);
}

/** Time in Go's default format, such as `2006-01-02 15:04:05 +0000 UTC`. */
function goTime(time: Date): string {
  const offset = -time.getTimezoneOffset();
  const digits = (value: number): string => String(Math.abs(value)).padStart(2, '0');
  const local = new Date(time.getTime() + offset * 60_000).toISOString();
  const zone = new Intl.DateTimeFormat('en', { timeZoneName: 'short' })
    .formatToParts(time)
    .find(({ type }) => type === 'timeZoneName');
  const sign = offset < 0 ? '-' : '+';
  const shift = `${sign}${digits(Math.trunc(offset / 60))}${digits(offset % 60)}`;
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${shift} ${zone?.value ?? ''}`;
}

export function describeEndpoints(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object).line(0, 'Subsets:');
  for (const subset of listAt(object, 'subsets')) {
    const addresses = (field: string): string =>
      listAt(subset, field)
        .map((each) => textAt(each, 'ip'))
        .join(',');
    page
      .required(1, 'Addresses', addresses('addresses'))
      .required(1, 'NotReadyAddresses', addresses('notReadyAddresses'));
    const ports = portRows(subset);
    if (ports.length > 0) tableLines(page.line(1, 'Ports:'), 2, PORT_COLUMNS, ports);
    page.line(0, '');
  }
  return page.events(events, now).toString();
}

const PORT_COLUMNS = ['Name', 'Port', 'Protocol'];

const portRows = (object: unknown): string[][] =>
  listAt(object, 'ports').map((port) => [
    ...[textAt(port, 'name') || '<unset>', textAt(port, 'port') || '<unset>', textAt(port, 'protocol')],
  ]);

export function describeEndpointSlice(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object).line(0, `AddressType:\t${textAt(object, 'addressType')}`);
  const ports = portRows(object);
  if (ports.length === 0) page.line(0, 'Ports: <unset>');
  else tableLines(page.line(0, 'Ports:'), 1, PORT_COLUMNS, ports);
  const endpoints = listAt(object, 'endpoints');
  page.line(0, endpoints.length === 0 ? 'Endpoints: <none>' : 'Endpoints:');
  for (const each of endpoints) {
    const text = (...path: string[]): string => textAt(each, ...path) || '<unset>';
    page
      .line(1, `- Addresses:\t${textsAt(each, 'addresses').join(', ') || '<none>'}`)
      .line(2, 'Conditions:')
      .line(3, `Ready:\t${text('conditions', 'ready')}`)
      .line(2, `Hostname:\t${text('hostname')}`);
    if (each['targetRef'] !== undefined)
      page.line(2, `TargetRef:\t${textAt(each, 'targetRef', 'kind')}/${textAt(each, 'targetRef', 'name')}`);
    page.line(2, `NodeName:\t${text('nodeName')}`).line(2, `Zone:\t${text('zone')}`);
  }
  return page.events(events, now).toString();
}
