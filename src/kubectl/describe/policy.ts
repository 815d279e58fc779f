/** Namespaces, quotas, limits, budgets and priorities in `describe`. Source: the output of kubectl 1.36. */
import { type AnyObject, fieldAt, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';
import { labelsText } from '../core/table.ts';
import { metadataLines, Page, selectorText, tableLines, textsAt, timeAt } from './page.ts';
import type { Related } from './related-facts.ts';

export const LIMIT_COLUMNS = [
  'Type',
  'Resource',
  'Min',
  'Max',
  'Default Request',
  'Default Limit',
  'Max Limit/Request Ratio',
];
const LIMIT_FIELDS = ['min', 'max', 'defaultRequest', 'default', 'maxLimitRequestRatio'];

const SCOPES: Readonly<Record<string, string>> = {
  Terminating:
    'Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system.',
  NotTerminating:
    'Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate.',
  BestEffort:
    'Matches all pods that do not have resource requirements set. These pods have a best effort quality of service.',
  NotBestEffort:
    'Matches all pods that have at least one resource requirement set. These pods have a burstable or guaranteed quality of service.',
};

export function describeNamespace(object: AnyObject, { quotas, limitRanges }: Related): string {
  const page = metadataLines(new Page(), object).line(0, `Status:\t${textAt(object, 'status', 'phase')}`);
  conditionTable(page, object);
  if (quotas !== undefined) namespaceQuotas(page.line(0, ''), quotas);
  if (limitRanges !== undefined) namespaceLimits(page.line(0, ''), limitRanges);
  return page.toString();
}

/** Adds conditions with time, reason and message. */
export function conditionTable(page: Page, object: AnyObject): void {
  const conditions = listAt(object, 'status', 'conditions');
  if (conditions.length === 0) return;
  const rows = conditions.map((each) => [
    ...[textAt(each, 'type'), textAt(each, 'status'), timeAt(each, 'lastTransitionTime')],
    ...[textAt(each, 'reason'), textAt(each, 'message')],
  ]);
  tableLines(page.line(0, 'Conditions:'), 1, ['Type', 'Status', 'LastTransitionTime', 'Reason', 'Message'], rows);
}

function namespaceQuotas(page: Page, quotas: readonly AnyObject[]): void {
  if (quotas.length === 0) {
    page.line(0, 'No resource quota.');
    return;
  }
  page.line(0, 'Resource Quotas');
  for (const quota of quotas) {
    page.line(1, `Name:\t${quota.metadata?.name ?? ''}`);
    scopeLines(page, quota, 1, '* ');
    page.line(1, 'Resource\tUsed\tHard').line(1, '--------\t---\t---');
    for (const cells of quotaRows(quota)) page.line(1, cells.join('\t'));
  }
}

function namespaceLimits(page: Page, ranges: readonly AnyObject[]): void {
  if (ranges.length === 0) {
    page.line(0, 'No LimitRange resource.');
    return;
  }
  page.line(0, 'Resource Limits');
  const rows = [LIMIT_COLUMNS, LIMIT_COLUMNS.map((title) => '-'.repeat(title.length)), ...ranges.flatMap(limitRows)];
  for (const cells of rows) page.line(0, ` ${cells.join('\t')}`);
}

export function describeQuota(object: AnyObject): string {
  const page = namespacedHead(object);
  scopeLines(page, object, 0, ' * ');
  return tableLines(page, 0, ['Resource', 'Used', 'Hard'], quotaRows(object)).toString();
}

export const describeLimitRange = (object: AnyObject): string =>
  tableLines(namespacedHead(object), 0, LIMIT_COLUMNS, limitRows(object)).toString();

const namespacedHead = (object: AnyObject): Page =>
  new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`);

function scopeLines(page: Page, quota: AnyObject, level: number, bullet: string): void {
  const scopes = textsAt(quota, 'spec', 'scopes').sort();
  page.field(level, 'Scopes', scopes.join(', '));
  for (const scope of scopes) if (SCOPES[scope] !== undefined) page.line(level, `${bullet}${SCOPES[scope]}`);
}

export const quotaRows = (quota: AnyObject): string[][] =>
  Object.entries(mapAt(quota, 'status', 'hard'))
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, hard]) => [name, mapAt(quota, 'status', 'used')[name] ?? '0', hard]);

export const limitRows = (range: AnyObject): string[][] =>
  listAt(range, 'spec', 'limits').flatMap((limit) => {
    const names = new Set(LIMIT_FIELDS.flatMap((field) => Object.keys(mapAt(limit, field))));
    return [...names]
      .sort()
      .map((name) => [textAt(limit, 'type'), name, ...LIMIT_FIELDS.map((field) => textAt(limit, field, name) || '-')]);
  });

export function describeDisruptionBudget(object: AnyObject, { events, now }: Related): string {
  const minimum = textAt(object, 'spec', 'minAvailable');
  const page = namespacedHead(object).field(0, 'Min available', minimum);
  if (minimum === '') page.field(0, 'Max unavailable', textAt(object, 'spec', 'maxUnavailable'));
  const selector = fieldAt(object, 'spec', 'selector');
  page.line(0, `Selector:\t${selector === undefined ? '<unset>' : selectorText(selector)}`).line(0, 'Status:');
  for (const [title, field] of [
    ['Allowed disruptions', 'disruptionsAllowed'],
    ['Current', 'currentHealthy'],
    ['Desired', 'desiredHealthy'],
    ['Total', 'expectedPods'],
  ] as const)
    page.line(2, `${title}:\t${numberAt(object, 0, 'status', field)}`);
  return page.events(events, now).toString();
}

export const describePriorityClass = (object: AnyObject, { events, now }: Related): string =>
  new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Value:\t${numberAt(object, 0, 'value')}`)
    .line(0, `GlobalDefault:\t${fieldAt(object, 'globalDefault') === true}`)
    .line(0, `PreemptionPolicy:\t${textAt(object, 'preemptionPolicy')}`)
    .line(0, `Description:\t${textAt(object, 'description')}`)
    .line(0, `Annotations:\t${labelsText(mapAt(object, 'metadata', 'annotations'))}`)
    .events(events, now)
    .toString();
