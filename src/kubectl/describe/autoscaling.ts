/** Horizontal pod autoscalers in `describe`. Source: the output of kubectl 1.36. */
import { type AnyObject, fieldAt, listAt, numberAt, textAt } from '../core/objects.ts';
import { metadataLines, Page, tableLines, timeAt } from './page.ts';
import type { Related } from './related-facts.ts';

type Metric = Record<string, unknown>;

const UNKNOWN = '<unknown>';

export function describeAutoscaler(object: AnyObject, { events, now }: Related): string {
  const target = textAt(object, 'spec', 'scaleTargetRef', 'kind');
  const page = metadataLines(new Page(), object)
    .line(0, `CreationTimestamp:\t${timeAt(object, 'metadata', 'creationTimestamp')}`)
    .line(0, `Reference:\t${target}/${textAt(object, 'spec', 'scaleTargetRef', 'name')}`)
    .line(0, 'Metrics:\t( current / target )');
  const current = listAt(object, 'status', 'currentMetrics');
  for (const [index, metric] of listAt(object, 'spec', 'metrics').entries())
    page.line(1, metricText(metric, current[index]));
  page
    .line(0, `Min replicas:\t${textAt(object, 'spec', 'minReplicas') || '<unset>'}`)
    .line(0, `Max replicas:\t${numberAt(object, 0, 'spec', 'maxReplicas')}`);
  const behavior = fieldAt(object, 'spec', 'behavior');
  if (behavior !== undefined) {
    directionLines(page.line(0, 'Behavior:'), 'Scale Up', fieldAt(behavior, 'scaleUp'));
    directionLines(page, 'Scale Down', fieldAt(behavior, 'scaleDown'));
  }
  const replicas = (field: string): number => numberAt(object, 0, 'status', field);
  page.line(0, `${target} pods:\t${replicas('currentReplicas')} current / ${replicas('desiredReplicas')} desired`);
  const columns = ['type', 'status', 'reason', 'message'];
  const conditions = listAt(object, 'status', 'conditions').map((each) => columns.map((field) => textAt(each, field)));
  if (conditions.length > 0)
    tableLines(page.line(0, 'Conditions:'), 1, ['Type', 'Status', 'Reason', 'Message'], conditions);
  return page.events(events, now).toString();
}

/** Field of a metric that contains its source, by type. */
const SOURCES: Readonly<Record<string, string>> = {
  External: 'external',
  Pods: 'pods',
  Object: 'object',
  Resource: 'resource',
  ContainerResource: 'containerResource',
};

function metricText(metric: Metric, status: Metric | undefined): string {
  const type = textAt(metric, 'type');
  const field = SOURCES[type];
  if (field === undefined) return `<unknown metric type ${JSON.stringify(type)}>`;
  const source = metric[field];
  const hasCurrent = fieldAt(status, field) !== undefined;
  const pair = (value: 'averageValue' | 'value'): string => {
    const current = hasCurrent ? textAt(status, field, 'current', value) || '0' : UNKNOWN;
    return `${current} / ${textAt(source, 'target', value)}`;
  };
  const quoted = JSON.stringify(textAt(source, 'metric', 'name'));
  const isAverage = fieldAt(source, 'target', 'averageValue') !== undefined;
  switch (field) {
    case 'external':
      return isAverage
        ? `${quoted} (target average value):\t${pair('averageValue')}`
        : `${quoted} (target value):\t${pair('value')}`;
    case 'pods':
      return `${quoted} on pods:\t${pair('averageValue')}`;
    case 'object': {
      const described = `${textAt(source, 'describedObject', 'kind')}/${textAt(source, 'describedObject', 'name')}`;
      return textAt(source, 'target', 'type') === 'AverageValue'
        ? `${quoted} on ${described} (target average value):\t${pair('averageValue')}`
        : `${quoted} on ${described} (target value):\t${pair('value')}`;
    }
    default: {
      const container = field === 'resource' ? '' : ` of container ${JSON.stringify(textAt(source, 'container'))}`;
      const title = `resource ${textAt(source, 'name')}${container} on pods`;
      return isAverage
        ? `${title}:\t${pair('averageValue')}`
        : `${title}  ${utilization(source, fieldAt(status, field))}`;
    }
  }
}

function utilization(source: unknown, status: unknown): string {
  const current = textAt(status, 'current', 'averageUtilization');
  const wanted = textAt(source, 'target', 'averageUtilization');
  const shown = current === '' ? UNKNOWN : `${current}% (${textAt(status, 'current', 'averageValue')})`;
  return `(as a percentage of request):\t${shown} / ${wanted === '' ? '<auto>' : `${wanted}%`}`;
}

function directionLines(page: Page, title: string, rules: unknown): void {
  if (rules === undefined) return;
  page.line(1, `${title}:`);
  const window = textAt(rules, 'stabilizationWindowSeconds');
  if (window !== '') page.line(2, `Stabilization Window: ${window} seconds`);
  const policies = listAt(rules, 'policies');
  if (policies.length === 0) return;
  page.line(2, `Select Policy: ${textAt(rules, 'selectPolicy') || 'Max'}`).line(2, 'Policies:');
  for (const policy of policies)
    page.line(
      3,
      `- Type: ${textAt(policy, 'type')}\tValue: ${textAt(policy, 'value')}\tPeriod: ${textAt(policy, 'periodSeconds')} seconds`,
    );
}
