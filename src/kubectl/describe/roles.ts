/** Roles, bindings and certificate signing requests in `describe`. Source: the output of kubectl 1.36. */

import { humanDuration } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { RULE_COLUMNS, ruleRows } from '../core/policy-rules.ts';
import { labelsText } from '../core/table.ts';
import { labelLines, Page, tableLines, timeAt } from './page.ts';
import type { Related } from './related-facts.ts';

/** The page begins without the namespace, also for roles and bindings of a namespace. */
const headOf = (object: AnyObject): Page =>
  labelLines(new Page().line(0, `Name:\t${object.metadata?.name ?? ''}`), object);

export function describeRole(object: AnyObject): string {
  const page = headOf(object).line(0, 'PolicyRule:');
  return tableLines(page, 1, RULE_COLUMNS, ruleRows(listAt(object, 'rules'))).toString();
}

export function describeRoleBinding(object: AnyObject): string {
  const page = headOf(object)
    .line(0, 'Role:')
    .line(1, `Kind:\t${textAt(object, 'roleRef', 'kind')}`)
    .line(1, `Name:\t${textAt(object, 'roleRef', 'name')}`)
    .line(0, 'Subjects:');
  const subjects = listAt(object, 'subjects').map((each) =>
    ['kind', 'name', 'namespace'].map((field) => textAt(each, field)),
  );
  return tableLines(page, 1, ['Kind', 'Name', 'Namespace'], subjects).toString();
}

export function describeSigningRequest(object: AnyObject, { events, now, request }: Related): string {
  const seconds = textAt(object, 'spec', 'expirationSeconds');
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Labels:\t${labelsText(mapAt(object, 'metadata', 'labels'))}`)
    .line(0, `Annotations:\t${labelsText(mapAt(object, 'metadata', 'annotations'))}`)
    .line(0, `CreationTimestamp:\t${timeAt(object, 'metadata', 'creationTimestamp')}`)
    .line(0, `Requesting User:\t${textAt(object, 'spec', 'username')}`)
    .field(0, 'Signer', textAt(object, 'spec', 'signerName'))
    .field(0, 'Requested Duration', seconds === '' ? '' : humanDuration(Number(seconds) * 1_000))
    .line(0, `Status:\t${requestStatus(object)}`)
    .line(0, 'Subject:')
    .line(0, `\tCommon Name:\t${request?.commonName ?? ''}`)
    .line(0, '\tSerial Number:\t');
  const list = (title: string, values: readonly string[]): void => {
    for (const [index, value] of values.entries()) page.line(0, `\t${index === 0 ? `${title}:` : ''}\t${value}`);
  };
  list('Organization', request?.organizations ?? []);
  const names: readonly (readonly [string, readonly string[]])[] = [
    ['DNS Names', request?.dnsNames ?? []],
    ['Email Addresses', request?.emailAddresses ?? []],
    ['URIs', request?.uris ?? []],
    ['IP Addresses', request?.ipAddresses ?? []],
  ];
  if (names.some(([, values]) => values.length > 0)) page.line(0, 'Subject Alternative Names:');
  for (const [title, values] of names) list(title, values);
  return page.events(events, now).toString();
}

function requestStatus(object: AnyObject): string {
  const types = new Set(listAt(object, 'status', 'conditions').map(({ type }) => type));
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending';
  const failed = types.has('Failed') ? ',Failed' : '';
  return `${decision}${failed}${fieldAt(object, 'status', 'certificate') === undefined ? '' : ',Issued'}`;
}
