/** Workloads, services and configuration in `describe`. Source: the output of kubectl 1.36. */

import { humanDuration } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';
import { labelsText } from '../core/table.ts';
import { endpointsText } from './endpoints.ts';
import { conditionLines, controllerOf, goList, labelLines, metadataLines, Page, selectorText, timeAt } from './page.ts';
import { templateLines } from './pod-template.ts';
import type { Related } from './related-facts.ts';

function podStates(pods: readonly AnyObject[]): string {
  const count = (phase: string): number => pods.filter((pod) => textAt(pod, 'status', 'phase') === phase).length;
  return `${count('Running')} Running / ${count('Pending')} Waiting / ${count('Succeeded')} Succeeded / ${count('Failed')} Failed`;
}

const headOf = (object: AnyObject): Page =>
  new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`);

export function describeDeployment(object: AnyObject, { events, replicaSets, now }: Related): string {
  const page = labelLines(
    headOf(object).line(0, `CreationTimestamp:\t${timeAt(object, 'metadata', 'creationTimestamp')}`),
    object,
  );
  const status = (field: string): number => numberAt(object, 0, 'status', field);
  page.line(0, `Selector:\t${selectorText(fieldAt(object, 'spec', 'selector'))}`);
  page.line(
    0,
    `Replicas:\t${numberAt(object, 1, 'spec', 'replicas')} desired | ${status('updatedReplicas')} updated | ${status('replicas')} total | ${status('availableReplicas')} available | ${status('unavailableReplicas')} unavailable`,
  );
  page
    .line(0, `StrategyType:\t${textAt(object, 'spec', 'strategy', 'type')}`)
    .line(0, `MinReadySeconds:\t${numberAt(object, 0, 'spec', 'minReadySeconds')}`);
  const rolling = fieldAt(object, 'spec', 'strategy', 'rollingUpdate');
  if (rolling !== undefined)
    page.line(
      0,
      `RollingUpdateStrategy:\t${textAt(rolling, 'maxUnavailable')} max unavailable, ${textAt(rolling, 'maxSurge')} max surge`,
    );
  templateLines(page, fieldAt(object, 'spec', 'template'));
  conditionLines(page, object);
  const revision = object.metadata?.annotations?.['deployment.kubernetes.io/revision'];
  const [current, old] = [
    replicaSets.filter((set) => set.metadata?.annotations?.['deployment.kubernetes.io/revision'] === revision),
    replicaSets.filter((set) => set.metadata?.annotations?.['deployment.kubernetes.io/revision'] !== revision),
  ];
  const text = (sets: readonly AnyObject[]): string =>
    sets
      .map(
        (set) =>
          `${set.metadata?.name ?? ''} (${numberAt(set, 0, 'status', 'replicas')}/${numberAt(set, 0, 'spec', 'replicas')} replicas created)`,
      )
      .join(', ') || '<none>';
  if (replicaSets.length > 0) page.line(0, `OldReplicaSets:\t${text(old)}`).line(0, `NewReplicaSet:\t${text(current)}`);
  return page.events(events, now).toString();
}

export function describeReplicaSet(object: AnyObject, { events, pods, now }: Related): string {
  const page = labelLines(
    headOf(object).line(0, `Selector:\t${selectorText(fieldAt(object, 'spec', 'selector'))}`),
    object,
  );
  page.field(0, 'Controlled By', controllerOf(object));
  page.line(
    0,
    `Replicas:\t${numberAt(object, 0, 'status', 'replicas')} current / ${numberAt(object, 1, 'spec', 'replicas')} desired`,
  );
  page.line(0, `Pods Status:\t${podStates(pods)}`);
  templateLines(page, fieldAt(object, 'spec', 'template'));
  conditionLines(page, object);
  return page.events(events, now).toString();
}

export function describeDaemonSet(object: AnyObject, { events, pods, now }: Related): string {
  const page = headOf(object).line(0, `Selector:\t${selectorText(fieldAt(object, 'spec', 'selector'))}`);
  page.line(0, `Node-Selector:\t${labelsText(mapAt(object, 'spec', 'template', 'spec', 'nodeSelector'))}`);
  labelLines(page, object);
  for (const [title, field] of [
    ['Desired Number of Nodes Scheduled', 'desiredNumberScheduled'],
    ['Current Number of Nodes Scheduled', 'currentNumberScheduled'],
    ['Number of Nodes Scheduled with Up-to-date Pods', 'updatedNumberScheduled'],
    ['Number of Nodes Scheduled with Available Pods', 'numberAvailable'],
    ['Number of Nodes Misscheduled', 'numberMisscheduled'],
  ] as const)
    page.line(0, `${title}: ${numberAt(object, 0, 'status', field)}`);
  page.line(0, `Pods Status:\t${podStates(pods)}`);
  templateLines(page, fieldAt(object, 'spec', 'template'));
  return page.events(events, now).toString();
}

export function describeStatefulSet(object: AnyObject, { events, pods, now }: Related): string {
  const page = headOf(object)
    .line(0, `CreationTimestamp:\t${timeAt(object, 'metadata', 'creationTimestamp')}`)
    .line(0, `Selector:\t${selectorText(fieldAt(object, 'spec', 'selector'))}`);
  labelLines(page, object);
  page.line(
    0,
    `Replicas:\t${numberAt(object, 1, 'spec', 'replicas')} desired | ${numberAt(object, 0, 'status', 'replicas')} total`,
  );
  page.line(0, `Update Strategy:\t${textAt(object, 'spec', 'updateStrategy', 'type')}`);
  const partition = textAt(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
  page.field(1, 'Partition', partition);
  if (partition !== '')
    page.field(1, 'MaxUnavailable', textAt(object, 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable'));
  page.line(0, `Pods Status:\t${podStates(pods)}`);
  templateLines(page, fieldAt(object, 'spec', 'template'));
  const claims = listAt(object, 'spec', 'volumeClaimTemplates') as readonly AnyObject[];
  if (claims.length === 0) page.line(0, 'Volume Claims:\t<none>');
  else page.line(0, 'Volume Claims:');
  for (const claim of claims) {
    page
      .line(1, `Name:\t${claim.metadata?.name ?? ''}`)
      .line(1, `StorageClass:\t${textAt(claim, 'spec', 'storageClassName')}`);
    page
      .map('  Labels', mapAt(claim, 'metadata', 'labels'))
      .map('  Annotations', mapAt(claim, 'metadata', 'annotations'));
    page.line(1, `Capacity:\t${textAt(claim, 'spec', 'resources', 'requests', 'storage') || '<default>'}`);
    page.line(1, `Access Modes:\t${goList(claim, 'spec', 'accessModes')}`);
  }
  return page.events(events, now).toString();
}

export function describeJob(object: AnyObject, { events, now }: Related): string {
  const page = labelLines(
    headOf(object).line(0, `Selector:\t${selectorText(fieldAt(object, 'spec', 'selector'))}`),
    object,
  );
  page.field(0, 'Controlled By', controllerOf(object)).field(0, 'Parallelism', textAt(object, 'spec', 'parallelism'));
  page.line(0, `Completions:\t${textAt(object, 'spec', 'completions') || '<unset>'}`);
  page
    .field(0, 'Completion Mode', textAt(object, 'spec', 'completionMode'))
    .field(0, 'Suspend', textAt(object, 'spec', 'suspend'));
  page
    .field(0, 'Backoff Limit', textAt(object, 'spec', 'backoffLimit'))
    .field(0, 'TTL Seconds After Finished', textAt(object, 'spec', 'ttlSecondsAfterFinished'));
  const [start, end] = [textAt(object, 'status', 'startTime'), textAt(object, 'status', 'completionTime')];
  if (start !== '') page.line(0, `Start Time:\t${timeAt(object, 'status', 'startTime')}`);
  if (end !== '') page.line(0, `Completed At:\t${timeAt(object, 'status', 'completionTime')}`);
  if (start !== '' && end !== '') page.line(0, `Duration:\t${humanDuration(Date.parse(end) - Date.parse(start))}`);
  const deadline = textAt(object, 'spec', 'activeDeadlineSeconds');
  page.field(0, 'Active Deadline Seconds', deadline === '' ? '' : `${deadline}s`);
  const count = (field: string): number => numberAt(object, 0, 'status', field);
  const ready = fieldAt(object, 'status', 'ready') === undefined ? '' : ` (${count('ready')} Ready)`;
  page.line(
    0,
    `Pods Statuses:\t${count('active')} Active${ready} / ${count('succeeded')} Succeeded / ${count('failed')} Failed`,
  );
  if (textAt(object, 'spec', 'completionMode') === 'Indexed')
    page.required(0, 'Completed Indexes', firstIndexes(textAt(object, 'status', 'completedIndexes')));
  templateLines(page, fieldAt(object, 'spec', 'template'));
  return page.events(events, now).toString();
}

const MAX_INDEXES_LENGTH = 50;

/** The indexes, shortened at the first comma after 50 characters. */
function firstIndexes(indexes: string): string {
  const end = indexes.indexOf(',', MAX_INDEXES_LENGTH);
  return end < 0 ? indexes : `${indexes.slice(0, end + 1)}...`;
}

export function describeCronJob(object: AnyObject, { events, now }: Related): string {
  const page = labelLines(headOf(object), object);
  const unset = (title: string, source: unknown, path: readonly string[], unit = ''): void => {
    const value = textAt(source, ...path);
    page.line(0, `${title}:\t${value === '' ? '<unset>' : `${value}${unit}`}`);
  };
  page
    .line(0, `Schedule:\t${textAt(object, 'spec', 'schedule')}`)
    .line(0, `Concurrency Policy:\t${textAt(object, 'spec', 'concurrencyPolicy')}`);
  const suspend = fieldAt(object, 'spec', 'suspend');
  page.line(0, `Suspend:\t${suspend === undefined ? '<unset>' : suspend === true ? 'True' : 'False'}`);
  for (const [title, field, unit] of [
    ['Time Zone', 'timeZone', ''],
    ['Successful Job History Limit', 'successfulJobsHistoryLimit', ''],
    ['Failed Job History Limit', 'failedJobsHistoryLimit', ''],
    ['Starting Deadline Seconds', 'startingDeadlineSeconds', 's'],
  ] as const)
    unset(title, object, ['spec', field], unit);
  const job = fieldAt(object, 'spec', 'jobTemplate', 'spec');
  const selector = fieldAt(job, 'selector');
  page.line(0, `Selector:\t${selector === undefined ? '<unset>' : selectorText(selector)}`);
  unset('Parallelism', job, ['parallelism']);
  unset('Completions', job, ['completions']);
  const deadline = textAt(job, 'activeDeadlineSeconds');
  page.field(0, 'Active Deadline Seconds', deadline === '' ? '' : `${deadline}s`);
  templateLines(page, fieldAt(job, 'template'));
  page.line(0, `Last Schedule Time:\t${timeAt(object, 'status', 'lastScheduleTime')}`);
  const active = listAt(object, 'status', 'active').map((each) => textAt(each, 'name'));
  return page.required(0, 'Active Jobs', active.join(', ')).events(events, now).toString();
}

export function describeReplicationController(object: AnyObject, { events, pods, now }: Related): string {
  const page = labelLines(
    headOf(object).line(0, `Selector:\t${labelsText(mapAt(object, 'spec', 'selector'))}`),
    object,
  );
  const [current, wanted] = [numberAt(object, 0, 'status', 'replicas'), numberAt(object, 1, 'spec', 'replicas')];
  page.line(0, `Replicas:\t${current} current / ${wanted} desired`).line(0, `Pods Status:\t${podStates(pods)}`);
  templateLines(page, fieldAt(object, 'spec', 'template'));
  conditionLines(page, object);
  return page.events(events, now).toString();
}

export function describeService(object: AnyObject, { events, endpointSlices, now }: Related): string {
  const page = metadataLines(new Page(), object);
  const list = (field: string): string => {
    const value = fieldAt(object, 'spec', field);
    return Array.isArray(value) ? value.join(',') : '';
  };
  page
    .line(0, `Selector:\t${labelsText(mapAt(object, 'spec', 'selector'))}`)
    .line(0, `Type:\t${textAt(object, 'spec', 'type')}`);
  page
    .field(0, 'IP Family Policy', textAt(object, 'spec', 'ipFamilyPolicy'))
    .required(0, 'IP Families', list('ipFamilies'));
  page.line(0, `IP:\t${textAt(object, 'spec', 'clusterIP')}`).required(0, 'IPs', list('clusterIPs'));
  page
    .field(0, 'External IPs', list('externalIPs'))
    .field(0, 'Desired LoadBalancer IP', textAt(object, 'spec', 'loadBalancerIP'))
    .field(0, 'External Name', textAt(object, 'spec', 'externalName'));
  const ingress = listAt(object, 'status', 'loadBalancer', 'ingress').map((each) => {
    const where = textAt(each, 'ip') || textAt(each, 'hostname');
    const mode = textAt(each, 'ipMode');
    return mode === '' ? where : `${where} (${mode})`;
  });
  page.field(0, 'LoadBalancer Ingress', ingress.join(', '));
  for (const port of listAt(object, 'spec', 'ports')) {
    const name = textAt(port, 'name') || '<unset>';
    const protocol = textAt(port, 'protocol');
    page
      .line(0, `Port:\t${name}\t${numberAt(port, 0, 'port')}/${protocol}`)
      .line(0, `TargetPort:\t${textAt(port, 'targetPort') || '0'}/${protocol}`);
    page.field(0, 'AppProtocol', textAt(port, 'appProtocol'));
    if (numberAt(port, 0, 'nodePort') !== 0)
      page.line(0, `NodePort:\t${name}\t${numberAt(port, 0, 'nodePort')}/${protocol}`);
    page.line(0, `Endpoints:\t${endpointsText(endpointSlices, textAt(port, 'name'))}`);
  }
  page.line(0, `Session Affinity:\t${textAt(object, 'spec', 'sessionAffinity')}`);
  page
    .field(0, 'External Traffic Policy', textAt(object, 'spec', 'externalTrafficPolicy'))
    .field(0, 'Internal Traffic Policy', textAt(object, 'spec', 'internalTrafficPolicy'));
  page
    .field(0, 'HealthCheck NodePort', textAt(object, 'spec', 'healthCheckNodePort'))
    .field(0, 'LoadBalancer Source Ranges', list('loadBalancerSourceRanges'));
  page.field(0, 'Traffic Distribution', textAt(object, 'spec', 'trafficDistribution'));
  return page.events(events, now).toString();
}

export function describeConfigMap(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object).line(0, '').line(0, 'Data').line(0, '====');
  const sorted = (field: string): [string, string][] =>
    Object.entries(mapAt(object, field)).sort(([left], [right]) => (left < right ? -1 : 1));
  for (const [key, value] of sorted('data')) page.line(0, `${key}:`).line(0, '----').line(0, value).line(0, '');
  page.line(0, '').line(0, 'BinaryData').line(0, '====');
  for (const [key, value] of sorted('binaryData')) page.line(0, `${key}: ${Buffer.from(value, 'base64').length} bytes`);
  return page.line(0, '').events(events, now).toString();
}

export function describeSecret(object: AnyObject): string {
  const page = metadataLines(new Page(), object)
    .line(0, '')
    .line(0, `Type:\t${textAt(object, 'type')}`)
    .line(0, '')
    .line(0, 'Data')
    .line(0, '====');
  const isToken = textAt(object, 'type') === 'kubernetes.io/service-account-token';
  for (const [key, value] of Object.entries(mapAt(object, 'data')).sort(([left], [right]) => (left < right ? -1 : 1))) {
    const bytes = Buffer.from(value, 'base64');
    page.line(0, `${key}:\t${isToken && key === 'token' ? bytes.toString('utf8') : `${bytes.length} bytes`}`);
  }
  return page.toString();
}

export function describeServiceAccount(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object);
  const names = listAt(object, 'imagePullSecrets').map((each) => textAt(each, 'name'));
  page.lines('Image pull secrets', names);
  return page.events(events, now).toString();
}
