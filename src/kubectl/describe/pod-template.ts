/** Pods and pod templates in `describe`. Source: the output of kubectl 1.36. */

import { ageOf } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';
import { controllerOf, type Events, labelLines, Page, selectorText, timeAt } from './page.ts';
import { volumeLines } from './volumes.ts';

type Part = Record<string, unknown>;

export function describePod(pod: AnyObject, events: Events, now: number): string {
  const page = new Page()
    .line(0, `Name:\t${pod.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${pod.metadata?.namespace ?? ''}`);
  page.field(0, 'Priority', textAt(pod, 'spec', 'priority'));
  page.field(0, 'Priority Class Name', textAt(pod, 'spec', 'priorityClassName'));
  page.field(0, 'Runtime Class Name', textAt(pod, 'spec', 'runtimeClassName'));
  page.field(0, 'Service Account', textAt(pod, 'spec', 'serviceAccountName'));
  const node = textAt(pod, 'spec', 'nodeName');
  page.required(0, 'Node', node === '' ? '' : `${node}/${textAt(pod, 'status', 'hostIP')}`);
  if (textAt(pod, 'status', 'startTime') !== '') page.line(0, `Start Time:\t${timeAt(pod, 'status', 'startTime')}`);
  labelLines(page, pod);
  const phase = textAt(pod, 'status', 'phase');
  const deleted = pod.metadata?.deletionTimestamp;
  if (deleted !== undefined && phase !== 'Failed' && phase !== 'Succeeded')
    page
      .line(0, `Status:\tTerminating (lasts ${ageOf(deleted, now)})`)
      .line(0, `Termination Grace Period:\t${textAt(pod, 'metadata', 'deletionGracePeriodSeconds')}s`);
  else page.line(0, `Status:\t${phase}`);
  page.field(0, 'Reason', textAt(pod, 'status', 'reason'));
  page.field(0, 'Message', textAt(pod, 'status', 'message'));
  seccompLines(page, 0, fieldAt(pod, 'spec', 'securityContext'));
  page.line(0, `IP:\t${textAt(pod, 'status', 'podIP')}`);
  const addresses = listAt(pod, 'status', 'podIPs');
  if (addresses.length === 0) page.line(0, 'IPs:\t<none>');
  else page.line(0, 'IPs:');
  for (const each of addresses) page.line(1, `IP:\t${textAt(each, 'ip')}`);
  page.field(0, 'Controlled By', controllerOf(pod));
  page.field(0, 'NominatedNodeName', textAt(pod, 'status', 'nominatedNodeName'));
  if (fieldAt(pod, 'spec', 'resources') !== undefined) {
    page.line(0, 'Resources:');
    resourceLines(page, 1, fieldAt(pod, 'spec', 'resources'));
  }
  for (const [title, spec, status] of [
    ['Init Containers', 'initContainers', 'initContainerStatuses'],
    ['Containers', 'containers', 'containerStatuses'],
    ['Ephemeral Containers', 'ephemeralContainers', 'ephemeralContainerStatuses'],
  ] as const)
    if (title === 'Containers' || listAt(pod, 'spec', spec).length > 0)
      containerLines(page, title, listAt(pod, 'spec', spec), {
        statuses: listAt(pod, 'status', status),
        indent: '',
        pod,
      });
  const conditions = listAt(pod, 'status', 'conditions');
  const gates = listAt(pod, 'spec', 'readinessGates');
  if (gates.length > 0) page.line(0, 'Readiness Gates:').line(1, 'Type\tStatus');
  for (const gate of gates) {
    const found = conditions.find(({ type }) => type === gate['conditionType']);
    page.line(1, `${textAt(gate, 'conditionType')} \t${found === undefined ? '<none>' : textAt(found, 'status')} `);
  }
  if (conditions.length > 0) page.line(0, 'Conditions:').line(1, 'Type\tStatus');
  for (const each of conditions) page.line(1, `${textAt(each, 'type')} \t${textAt(each, 'status')} `);
  volumeLines(page, listAt(pod, 'spec', 'volumes'), '');
  page.line(0, `QoS Class:\t${textAt(pod, 'status', 'qosClass')}`);
  page.map('Node-Selectors', mapAt(pod, 'spec', 'nodeSelector'));
  page.lines('Tolerations', tolerations(listAt(pod, 'spec', 'tolerations')));
  spreadLines(page, listAt(pod, 'spec', 'topologySpreadConstraints'), '');
  return page.events(events, now).toString();
}

/** Text about the template of a workload, with tabs that `rollout history` does not align. */
export function describePodTemplate(template: unknown, title = 'Pod Template:'): string {
  const page = new Page();
  templateLines(page, template, title);
  return page.unaligned();
}

export function templateLines(page: Page, template: unknown, title = 'Pod Template:'): void {
  page.line(0, title).map('  Labels', mapAt(template, 'metadata', 'labels'));
  if (Object.keys(mapAt(template, 'metadata', 'annotations')).length > 0)
    page.annotations('  Annotations', mapAt(template, 'metadata', 'annotations'));
  page.field(1, 'Service Account', textAt(template, 'spec', 'serviceAccountName'));
  const inits = listAt(template, 'spec', 'initContainers');
  if (inits.length > 0) containerLines(page, 'Init Containers', inits, { statuses: [], indent: '  ', pod: undefined });
  containerLines(page, 'Containers', listAt(template, 'spec', 'containers'), {
    statuses: [],
    indent: '  ',
    pod: undefined,
  });
  volumeLines(page, listAt(template, 'spec', 'volumes'), '  ');
  spreadLines(page, listAt(template, 'spec', 'topologySpreadConstraints'), '  ');
  page.field(1, 'Priority Class Name', textAt(template, 'spec', 'priorityClassName'));
  page.map('  Node-Selectors', mapAt(template, 'spec', 'nodeSelector'));
  page.lines('  Tolerations', tolerations(listAt(template, 'spec', 'tolerations')));
}

function seccompLines(page: Page, level: number, context: unknown): void {
  page.field(level, 'SeccompProfile', textAt(context, 'seccompProfile', 'type'));
  page.field(level === 0 ? 0 : level + 1, 'LocalhostProfile', textAt(context, 'seccompProfile', 'localhostProfile'));
}

interface ContainerContext {
  readonly statuses: readonly Part[];
  readonly indent: string;
  readonly pod: AnyObject | undefined;
}

function containerLines(
  page: Page,
  title: string,
  containers: readonly Part[],
  { statuses, indent, pod }: ContainerContext,
): void {
  page.line(0, containers.length === 0 ? `${indent}${title}: <none>` : `${indent}${title}:`);
  for (const container of containers) {
    const status = statuses.find(({ name }) => name === container['name']);
    page.line(1, `${indent === '' ? '' : ' '}${textAt(container, 'name')}:`);
    if (status !== undefined) page.line(2, `Container ID:\t${textAt(status, 'containerID')}`);
    page.line(2, `Image:\t${textAt(container, 'image')}`);
    if (status !== undefined) page.line(2, `Image ID:\t${textAt(status, 'imageID')}`);
    portLines(page, container);
    seccompLines(page, 2, container['securityContext']);
    wordLines(page, 'Command', container['command']);
    wordLines(page, 'Args', container['args']);
    if (status !== undefined) statusLines(page, status);
    resourceLines(page, 2, container['resources']);
    for (const [name, field] of [
      ['Liveness', 'livenessProbe'],
      ['Readiness', 'readinessProbe'],
      ['Startup', 'startupProbe'],
    ] as const)
      if (container[field] !== undefined) page.line(2, `${name}:\t${probeText(container[field])}`);
    environmentLines(page, container, pod);
    mountLines(page, container);
  }
}

function portLines(page: Page, container: Part): void {
  const ports = listAt(container, 'ports');
  const text = (field: string, withName: boolean): string =>
    ports
      .map(
        (port) =>
          `${numberAt(port, 0, field)}/${textAt(port, 'protocol')}${withName && textAt(port, 'name') !== '' ? ` (${textAt(port, 'name')})` : ''}`,
      )
      .join(', ');
  page.required(2, ports.length > 1 ? 'Ports' : 'Port', text('containerPort', true));
  page.required(2, ports.length > 1 ? 'Host Ports' : 'Host Port', text('hostPort', true));
}

function wordLines(page: Page, title: string, words: unknown): void {
  if (!Array.isArray(words) || words.length === 0) return;
  page.line(2, `${title}:`);
  for (const word of words) for (const line of String(word).split('\n')) page.line(3, line);
}

function statusLines(page: Page, status: Part): void {
  stateLines(page, 'State', status['state']);
  if (fieldAt(status, 'lastState', 'terminated') !== undefined) stateLines(page, 'Last State', status['lastState']);
  page
    .line(2, `Ready:\t${status['ready'] === true ? 'True' : 'False'}`)
    .line(2, `Restart Count:\t${numberAt(status, 0, 'restartCount')}`);
}

function stateLines(page: Page, title: string, state: unknown): void {
  if (fieldAt(state, 'running') !== undefined) {
    page.line(2, `${title}:\tRunning`).line(3, `Started:\t${timeAt(state, 'running', 'startedAt')}`);
    return;
  }
  const ended = fieldAt(state, 'terminated');
  if (ended === undefined) {
    page.line(2, `${title}:\tWaiting`).field(3, 'Reason', textAt(state, 'waiting', 'reason'));
    return;
  }
  page
    .line(2, `${title}:\tTerminated`)
    .field(3, 'Reason', textAt(ended, 'reason'))
    .field(3, 'Message', textAt(ended, 'message'));
  page.line(3, `Exit Code:\t${numberAt(ended, 0, 'exitCode')}`);
  if (numberAt(ended, 0, 'signal') > 0) page.line(3, `Signal:\t${numberAt(ended, 0, 'signal')}`);
  page.line(3, `Started:\t${timeAt(ended, 'startedAt')}`).line(3, `Finished:\t${timeAt(ended, 'finishedAt')}`);
}

function resourceLines(page: Page, level: number, resources: unknown): void {
  for (const [title, field] of [
    ['Limits', 'limits'],
    ['Requests', 'requests'],
  ] as const) {
    const entries = Object.entries(mapAt(resources, field)).sort(([left], [right]) => (left < right ? -1 : 1));
    if (entries.length > 0) page.line(level, `${title}:`);
    for (const [name, quantity] of entries) page.line(level + 1, `${name}:\t${quantity}`);
  }
}

export function probeText(probe: unknown): string {
  const attributes = `delay=${numberAt(probe, 0, 'initialDelaySeconds')}s timeout=${numberAt(probe, 0, 'timeoutSeconds')}s period=${numberAt(probe, 0, 'periodSeconds')}s #success=${numberAt(probe, 0, 'successThreshold')} #failure=${numberAt(probe, 0, 'failureThreshold')}`;
  const command = fieldAt(probe, 'exec', 'command');
  if (Array.isArray(command)) return `exec [${command.join(' ')}] ${attributes}`;
  if (fieldAt(probe, 'httpGet') !== undefined) {
    const host = textAt(probe, 'httpGet', 'host');
    const path = textAt(probe, 'httpGet', 'path');
    return `http-get ${textAt(probe, 'httpGet', 'scheme').toLowerCase()}://${host.includes(':') ? `[${host}]` : host}:${textAt(probe, 'httpGet', 'port')}${path.startsWith('/') || path === '' ? path : `/${path}`} ${attributes}`;
  }
  if (fieldAt(probe, 'tcpSocket') !== undefined)
    return `tcp-socket ${textAt(probe, 'tcpSocket', 'host')}:${textAt(probe, 'tcpSocket', 'port')} ${attributes}`;
  if (fieldAt(probe, 'grpc') !== undefined)
    return `grpc <pod>:${textAt(probe, 'grpc', 'port')} ${textAt(probe, 'grpc', 'service')} ${attributes}`;
  return `unknown ${attributes}`;
}

function environmentLines(page: Page, container: Part, pod: AnyObject | undefined): void {
  const sources = listAt(container, 'envFrom');
  if (sources.length > 0) page.line(2, 'Environment Variables from:');
  for (const source of sources) {
    const field = source['configMapRef'] !== undefined ? 'configMapRef' : 'secretRef';
    const kind = field === 'configMapRef' ? 'ConfigMap' : 'Secret';
    const prefix = textAt(source, 'prefix');
    page.line(
      3,
      `${textAt(source, field, 'name')}\t${kind}${prefix === '' ? '' : ` with prefix '${prefix}'`}\tOptional: ${fieldAt(source, field, 'optional') === true}`,
    );
  }
  const variables = listAt(container, 'env');
  page.line(2, variables.length === 0 ? 'Environment:\t<none>' : 'Environment:');
  for (const each of variables) {
    const name = textAt(each, 'name');
    const from = each['valueFrom'];
    if (from === undefined) {
      for (const [index, line] of textAt(each, 'value').split('\n').entries())
        page.line(3, index === 0 ? `${name}:\t${line}` : `\t${line}`);
      continue;
    }
    const optional = (field: string): string => `Optional: ${fieldAt(from, field, 'optional') === true}`;
    if (fieldAt(from, 'fieldRef') !== undefined)
      page.line(
        3,
        `${name}:\t${fieldOf(pod, textAt(from, 'fieldRef', 'fieldPath'))} (${textAt(from, 'fieldRef', 'apiVersion')}:${textAt(from, 'fieldRef', 'fieldPath')})`,
      );
    else if (fieldAt(from, 'resourceFieldRef') !== undefined) {
      const resource = textAt(from, 'resourceFieldRef', 'resource');
      page.line(
        3,
        `${name}:\t${mapAt(container, 'resources', resource.split('.')[0] ?? '')[resource.slice(resource.indexOf('.') + 1)] ?? (resource.startsWith('limits.') ? 'node allocatable' : '0')} (${resource})`,
      );
    } else if (fieldAt(from, 'secretKeyRef') !== undefined)
      page.line(
        3,
        `${name}:\t<set to the key '${textAt(from, 'secretKeyRef', 'key')}' in secret '${textAt(from, 'secretKeyRef', 'name')}'>\t${optional('secretKeyRef')}`,
      );
    else if (fieldAt(from, 'configMapKeyRef') !== undefined)
      page.line(
        3,
        `${name}:\t<set to the key '${textAt(from, 'configMapKeyRef', 'key')}' of config map '${textAt(from, 'configMapKeyRef', 'name')}'>\t${optional('configMapKeyRef')}`,
      );
  }
}

/** Value of a field of the pod; empty for templates, which have no values. */
function fieldOf(pod: AnyObject | undefined, path: string): string {
  if (pod === undefined) return '';
  const [, map = '', key = ''] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  return map === '' ? textAt(pod, ...path.split('.')) : (mapAt(pod, 'metadata', map)[key] ?? '');
}

function mountLines(page: Page, container: Part): void {
  const mounts = listAt(container, 'volumeMounts').toSorted((left, right) =>
    textAt(left, 'mountPath') < textAt(right, 'mountPath') ? -1 : 1,
  );
  page.line(2, mounts.length === 0 ? 'Mounts:\t<none>' : 'Mounts:');
  for (const each of mounts) {
    const path = textAt(each, 'subPath');
    page.line(
      3,
      `${textAt(each, 'mountPath')} from ${textAt(each, 'name')} (${each['readOnly'] === true ? 'ro' : 'rw'}${path === '' ? '' : `,path=${JSON.stringify(path)}`})`,
    );
  }
  const devices = listAt(container, 'volumeDevices');
  if (devices.length > 0) page.line(2, 'Devices:');
  for (const each of devices) page.line(3, `${textAt(each, 'devicePath')} from ${textAt(each, 'name')}`);
}

export function tolerations(list: readonly Part[]): string[] {
  return list
    .toSorted((left, right) =>
      textAt(left, 'key') < textAt(right, 'key') ? -1 : textAt(left, 'key') > textAt(right, 'key') ? 1 : 0,
    )
    .map((each) => {
      const [key, value, effect, seconds] = ['key', 'value', 'effect', 'tolerationSeconds'].map((field) =>
        textAt(each, field),
      );
      const what = `${key}${value === '' ? '' : `=${value}`}${effect === '' ? '' : `:${effect}`}`;
      const exists = textAt(each, 'operator') === 'Exists' && value === '' ? `${what === '' ? '' : ' '}op=Exists` : '';
      return `${what}${exists}${seconds === '' ? '' : ` for ${seconds}s`}`;
    });
}

function spreadLines(page: Page, constraints: readonly Part[], indent: string): void {
  if (constraints.length === 0) return;
  page.lines(
    `${indent}Topology Spread Constraints`,
    constraints
      .toSorted((left, right) => (textAt(left, 'topologyKey') < textAt(right, 'topologyKey') ? -1 : 1))
      .map((each) => {
        const selector = each['labelSelector'];
        const pods = selector === undefined ? '' : ` for selector ${selectorText(selector)}`;
        return `${textAt(each, 'topologyKey')}:${textAt(each, 'whenUnsatisfiable')} when max skew ${textAt(each, 'maxSkew')} is exceeded${pods}`;
      }),
  );
}
