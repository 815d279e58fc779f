/**
 * Kinds of OpenShift in `describe`. kubectl prints all fields of these objects; the pages are those of `oc`, aligned
 * with spaces. Source: the output of oc 4.20.
 */
import { type AnyObject, fieldAt, LAST_APPLIED, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';
import { labelsText } from '../core/table.ts';
import { Page, textsAt } from './page.ts';
import { LIMIT_COLUMNS, limitRows, quotaRows } from './policy.ts';
import type { Related } from './related-facts.ts';

const SHOWN_ENDPOINTS = 3;
const HOUR_MS = 3_600_000;

/** Time since `time` in the words of `oc`, such as `About an hour`. */
export function relativeTime(time: string, now: number): string {
  const elapsed = now - Date.parse(time);
  const seconds = Math.trunc(elapsed / 1_000);
  const minutes = Math.trunc(seconds / 60);
  const hours = Math.trunc(elapsed / HOUR_MS + 0.5);
  const units: readonly (readonly [limit: number, count: number, singular: string, unit: string])[] = [
    [60, seconds, '1 second', 'seconds'],
    [60, minutes, 'About a minute', 'minutes'],
    [48, hours, 'About an hour', 'hours'],
    [14, Math.trunc(hours / 24), '1 day', 'days'],
    [8, Math.trunc(hours / 24 / 7), '1 week', 'weeks'],
    [24, Math.trunc(hours / 24 / 30), '1 month', 'months'],
  ];
  if (seconds < 1) return 'Less than a second';
  for (const [limit, count, singular, unit] of units)
    if (count < limit) return count === 1 ? singular : `${count} ${unit}`;
  return `${Math.trunc(hours / 24 / 365)} years`;
}

/** Name, namespace, age, labels and annotations, with which all pages begin. */
export function openshiftHead(object: AnyObject, now: number): Page {
  const { name = '', namespace, creationTimestamp } = object.metadata ?? {};
  const page = new Page().line(0, `Name:\t${name}`).field(0, 'Namespace', namespace);
  if (creationTimestamp !== undefined) page.line(0, `Created:\t${relativeTime(creationTimestamp, now)} ago`);
  const { description = '', [LAST_APPLIED]: _, ...annotations } = mapAt(object, 'metadata', 'annotations');
  return page
    .map('Labels', mapAt(object, 'metadata', 'labels'))
    .field(0, 'Description', description)
    .map('Annotations', annotations);
}

export function describeRoute(object: AnyObject, { now, endpointSlices }: Related): string {
  const host = textAt(object, 'spec', 'host');
  const page = openshiftHead(object, now).line(0, `Requested Host:\t${host || '<auto>'}`);
  const admissions = listAt(object, 'status', 'ingress');
  const isOwn = (ingress: object): boolean => host !== '' && textAt(ingress, 'host') === host;
  for (const ingress of admissions.filter(isOwn)) admissionLines(page, ingress, '', now);
  for (const ingress of admissions.filter((each) => !isOwn(each)))
    admissionLines(page, ingress, textAt(ingress, 'host'), now);
  const port = textAt(object, 'spec', 'port', 'targetPort');
  page
    .required(0, 'Path', textAt(object, 'spec', 'path'))
    .required(0, 'TLS Termination', textAt(object, 'spec', 'tls', 'termination'))
    .required(0, 'Insecure Policy', textAt(object, 'spec', 'tls', 'insecureEdgeTerminationPolicy'))
    .line(0, `Endpoint Port:\t${port || '<all endpoint ports>'}`);
  const backends = [fieldAt(object, 'spec', 'to'), ...listAt(object, 'spec', 'alternateBackends')];
  const total = backends.reduce<number>((sum, backend) => sum + numberAt(backend, 0, 'weight'), 0);
  for (const backend of backends) {
    const weight = numberAt(backend, 0, 'weight');
    const name = textAt(backend, 'name');
    const slices = endpointSlices.filter((each) => each.metadata?.labels?.['kubernetes.io/service-name'] === name);
    page
      .line(0, '')
      .line(0, `Service:\t${name}`)
      .line(0, `Weight:\t${weight > 0 ? `${weight} (${Math.trunc((weight * 100) / total)}%)` : '0'}`)
      .line(0, `Endpoints:\t${endpointsOf(slices, port)}`);
  }
  return page.toString();
}

function admissionLines(page: Page, ingress: object, host: string, now: number): void {
  const condition = listAt(ingress, 'conditions').find(({ type }) => type === 'Admitted');
  const canonical = textAt(ingress, 'routerCanonicalHostname');
  const router = textAt(ingress, 'routerName');
  const where = canonical === '' ? '' : ` (host ${canonical})`;
  const time = textAt(condition, 'lastTransitionTime');
  const age = time === '' ? '' : `${relativeTime(time, now).toLowerCase()} ago`;
  if (textAt(condition, 'status') === 'True')
    page.line(0, `\t  ${host} exposed on router ${router}${where}${age === '' ? '' : ` ${age}`}`);
  if (textAt(condition, 'status') !== 'False') return;
  const reason = textAt(condition, 'reason');
  page.line(0, `\trejected by router ${router}: ${where}${reason}${age === '' ? '' : ` (${age})`}`);
  const message = textAt(condition, 'message');
  if (message !== '') page.line(0, `\t  ${message}`);
}

/** Ready addresses of a service for the port of a route, which is a name, a number, or empty for all ports. */
function endpointsOf(slices: readonly AnyObject[], wanted: string): string {
  const found = slices.flatMap((slice) =>
    listAt(slice, 'ports')
      .filter((port) => wanted === '' || [textAt(port, 'name'), textAt(port, 'port')].includes(wanted))
      .flatMap((port) =>
        listAt(slice, 'endpoints')
          .filter((endpoint) => fieldAt(endpoint, 'conditions', 'ready') !== false)
          .map((endpoint) => `${textsAt(endpoint, 'addresses')[0] ?? ''}:${textAt(port, 'port')}`),
      ),
  );
  if (found.length === 0) return '<none>';
  const more = found.length - SHOWN_ENDPOINTS;
  return `${found.slice(0, SHOWN_ENDPOINTS).join(', ')}${more > 0 ? ` + ${more} more...` : ''}`;
}

export function describeProject(object: AnyObject, { now, quotas = [], limitRanges = [] }: Related): string {
  const annotation = (name: string): string => object.metadata?.annotations?.[`openshift.io/${name}`] ?? '';
  const page = openshiftHead(object, now)
    .required(0, 'Display Name', annotation('display-name'))
    .required(0, 'Description', annotation('description'))
    .required(0, 'Status', textAt(object, 'status', 'phase'))
    .required(0, 'Node Selector', annotation('node-selector'));
  const table = (title: string, objects: readonly AnyObject[], header: readonly string[], rows: Rows): void => {
    page.line(0, objects.length === 0 ? `${title}:\t<none>` : `${title}:`);
    for (const each of objects) {
      page.line(0, `\tName:\t${each.metadata?.name ?? ''}`);
      const cells = [header, header.map((text) => '-'.repeat(text.length)), ...rows(each)];
      for (const row of cells) page.line(0, `\t${row.join('\t')}`);
    }
  };
  table('Quota', quotas, ['Resource', 'Used', 'Hard'], quotaRows);
  table('Resource limits', limitRanges, LIMIT_COLUMNS, limitRows);
  return page.toString();
}

type Rows = (object: AnyObject) => string[][];

export function describeTemplate(object: AnyObject, { now }: Related): string {
  const page = openshiftHead(object, now).line(0, '').flush().line(0, 'Parameters:\t ');
  for (const each of listAt(object, 'parameters')) {
    const [value, generator] = [textAt(each, 'value'), textAt(each, 'generate')];
    page
      .line(2, `Name:\t${textAt(each, 'name')}`)
      .field(2, 'Display Name', textAt(each, 'displayName'))
      .field(2, 'Description', textAt(each, 'description'))
      .line(2, `Required:\t${each['required'] === true}`);
    if (generator === '') page.required(2, 'Value', value);
    else {
      page.field(2, 'Value', value).line(2, `${value === '' ? 'Generated' : 'Generated (ignored)'}:\t${generator}`);
      page.required(2, 'From', textAt(each, 'from'));
    }
    page.line(0, '');
  }
  page
    .line(0, '')
    .line(0, `Object Labels:\t${labelsText(mapAt(object, 'labels'))}`)
    .line(0, '')
    .required(0, 'Message', textAt(object, 'message'))
    .line(0, '')
    .flush()
    .line(0, 'Objects:\t ');
  for (const each of listAt(object, 'objects')) {
    const [group = ''] = textAt(each, 'apiVersion').split('/').slice(0, -1);
    page.line(2, `${textAt(each, 'kind')}${group === '' ? '' : `.${group}`}\t${textAt(each, 'metadata', 'name')}`);
  }
  return page.toString();
}
