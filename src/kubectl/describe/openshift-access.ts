/** Users, groups, cluster quotas and security context constraints in `describe`. Source: the output of oc 4.20. */
import { isApiError } from '../../api/meta/status.ts';
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { openshiftHead } from './openshift.ts';
import { Page, selectorText, tableLines, textsAt } from './page.ts';
import { quotaRows } from './policy.ts';
import type { Related } from './related-facts.ts';

export function describeUser(object: AnyObject, { now, accounts }: Related): string {
  const { name = '', uid = '' } = object.metadata ?? {};
  const identities = textsAt(object, 'identities').map((identity) => {
    const found = accounts.get(identity);
    if (found === undefined || found instanceof Error) return `${identity}${lookupText('Identity', found)}`;
    const owner = { name: textAt(found, 'user', 'name'), uid: textAt(found, 'user', 'uid') };
    if (owner.name !== name) return `${identity} (Error: Identity maps to user name '${owner.name}')`;
    return owner.uid === uid ? identity : `${identity} (Error: Identity maps to user UID '${owner.uid}')`;
  });
  return openshiftHead(object, now)
    .field(0, 'Full Name', textAt(object, 'fullName'))
    .lines('Identities', identities)
    .toString();
}

export function describeIdentity(object: AnyObject, { now, accounts }: Related): string {
  const page = openshiftHead(object, now);
  const user = { name: textAt(object, 'user', 'name'), uid: textAt(object, 'user', 'uid') };
  if (user.name === '') return page.required(0, 'User Name', '').required(0, 'User UID', user.uid).toString();
  const found = accounts.get(user.name);
  if (found === undefined || found instanceof Error)
    return page
      .line(0, `User Name:\t${user.name}${lookupText('User', found)}`)
      .required(0, 'User UID', user.uid)
      .toString();
  const { name = '' } = object.metadata ?? {};
  const isMutual = textsAt(found, 'identities').includes(name);
  const { uid = '' } = found.metadata ?? {};
  return page
    .line(0, `User Name:\t${user.name}${isMutual ? '' : ` (Error: User identities do not include ${name})`}`)
    .required(0, 'User UID', `${user.uid}${uid === user.uid ? '' : ` (Error: Actual user UID is ${uid})`}`)
    .toString();
}

const lookupText = (kind: string, error: Error | undefined): string =>
  error !== undefined && isApiError(error, 'NotFound')
    ? ` (Error: ${kind} does not exist)`
    : ` (Error: ${kind} lookup failed)`;

export const describeUserIdentityMapping = (object: AnyObject, { now }: Related): string =>
  openshiftHead(object, now)
    .required(0, 'Identity', textAt(object, 'identity', 'name'))
    .required(0, 'User Name', textAt(object, 'user', 'name'))
    .required(0, 'User UID', textAt(object, 'user', 'uid'))
    .toString();

export const describeGroup = (object: AnyObject, { now }: Related): string =>
  openshiftHead(object, now).lines('Users', textsAt(object, 'users')).toString();

/** Page of cluster quotas, and of the same quotas as a project sees them. */
export function describeClusterQuota(object: AnyObject, { now }: Related): string {
  const namespaces = listAt(object, 'status', 'namespaces').map((each) => JSON.stringify(textAt(each, 'namespace')));
  const labels = selectorText(fieldAt(object, 'spec', 'selector', 'labels'));
  const annotations = Object.entries(mapAt(object, 'spec', 'selector', 'annotations'))
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, value]) => `${key}:${value}`);
  const page = openshiftHead(object, now)
    .line(0, `Namespace Selector: [${namespaces.join(' ')}]`)
    .line(0, `Label Selector: ${labels === '<none>' ? '' : labels}`)
    .line(0, `AnnotationSelector: map[${annotations.join(' ')}]`)
    .field(0, 'Scopes', textsAt(object, 'spec', 'quota', 'scopes').sort().join(', '));
  return tableLines(
    page,
    0,
    ['Resource', 'Used', 'Hard'],
    quotaRows({ status: fieldAt(object, 'status', 'total') }),
  ).toString();
}

export function describeRoleBindingRestriction(object: AnyObject, { now }: Related): string {
  const page = openshiftHead(object, now);
  const names = (...path: readonly string[]): string => textsAt(object, 'spec', ...path).join(', ');
  const selectors = (field: string): void => {
    const texts = listAt(object, 'spec', field, 'labels').map(selectorText);
    if (texts.length === 0) page.required(0, 'Label selectors', '');
    else page.line(0, 'Label selectors:');
    for (const text of texts) page.line(0, `\t${text === '<none>' ? '' : text}`);
  };
  if (fieldAt(object, 'spec', 'userrestriction') instanceof Object) {
    page
      .line(0, 'Subject type:\tUser')
      .required(0, 'Users', names('userrestriction', 'users'))
      .required(0, 'Users in groups', names('userrestriction', 'groups'));
    selectors('userrestriction');
  } else if (fieldAt(object, 'spec', 'grouprestriction') instanceof Object) {
    page.line(0, 'Subject type:\tGroup').required(0, 'Groups', names('grouprestriction', 'groups'));
    selectors('grouprestriction');
  } else if (fieldAt(object, 'spec', 'serviceaccountrestriction') instanceof Object) {
    const accounts = listAt(object, 'spec', 'serviceaccountrestriction', 'serviceaccounts');
    page
      .line(0, 'Subject type:\tServiceAccount')
      .required(0, 'ServiceAccounts', accounts.map((each) => textAt(each, 'name')).join(', '))
      .required(0, 'Namespaces', names('serviceaccountrestriction', 'namespaces'));
  } else page.required(0, 'Subject type', '');
  return page.toString();
}

export function describeConstraints(object: AnyObject): string {
  const list = (field: string): string => textsAt(object, field).join(',') || '<none>';
  const isAllowed = (field: string): boolean => object[field] === true;
  const text = (...path: readonly string[]): string => textAt(object, ...path) || '<none>';
  const ranges = (field: string): string =>
    listAt(object, field, 'ranges')
      .map((each) => `${textAt(each, 'min') || 0}-${textAt(each, 'max') || 0}`)
      .join(',') || '<none>';
  const drivers = listAt(object, 'allowedFlexVolumes').map((each) => `driver=${textAt(each, 'driver')}`);
  return new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Priority:\t${text('priority')}`)
    .line(0, 'Access:\t')
    .line(1, `Users:\t${list('users')}`)
    .line(1, `Groups:\t${list('groups')}`)
    .line(0, 'Settings:\t')
    .line(1, `Allow Privileged:\t${isAllowed('allowPrivilegedContainer')}`)
    .line(1, `Allow Privilege Escalation:\t${text('allowPrivilegeEscalation')}`)
    .line(1, `Default Add Capabilities:\t${list('defaultAddCapabilities')}`)
    .line(1, `Required Drop Capabilities:\t${list('requiredDropCapabilities')}`)
    .line(1, `Allowed Capabilities:\t${list('allowedCapabilities')}`)
    .line(1, `Allowed Seccomp Profiles:\t${list('seccompProfiles')}`)
    .line(1, `Allowed Volume Types:\t${list('volumes')}`)
    .line(1, `Allowed Flexvolumes:\t${drivers.join(',') || '<all>'}`)
    .line(1, `Allowed Unsafe Sysctls:\t${list('allowedUnsafeSysctls')}`)
    .line(1, `Forbidden Sysctls:\t${list('forbiddenSysctls')}`)
    .line(1, `Allow Host Network:\t${isAllowed('allowHostNetwork')}`)
    .line(1, `Allow Host Ports:\t${isAllowed('allowHostPorts')}`)
    .line(1, `Allow Host PID:\t${isAllowed('allowHostPID')}`)
    .line(1, `Allow Host IPC:\t${isAllowed('allowHostIPC')}`)
    .line(1, `Read Only Root Filesystem:\t${isAllowed('readOnlyRootFilesystem')}`)
    .line(1, `Run As User Strategy: ${textAt(object, 'runAsUser', 'type')}\t`)
    .line(2, `UID:\t${text('runAsUser', 'uid')}`)
    .line(2, `UID Range Min:\t${text('runAsUser', 'uidRangeMin')}`)
    .line(2, `UID Range Max:\t${text('runAsUser', 'uidRangeMax')}`)
    .line(1, `SELinux Context Strategy: ${textAt(object, 'seLinuxContext', 'type')}\t`)
    .line(2, `User:\t${text('seLinuxContext', 'seLinuxOptions', 'user')}`)
    .line(2, `Role:\t${text('seLinuxContext', 'seLinuxOptions', 'role')}`)
    .line(2, `Type:\t${text('seLinuxContext', 'seLinuxOptions', 'type')}`)
    .line(2, `Level:\t${text('seLinuxContext', 'seLinuxOptions', 'level')}`)
    .line(1, `FSGroup Strategy: ${textAt(object, 'fsGroup', 'type')}\t`)
    .line(2, `Ranges:\t${ranges('fsGroup')}`)
    .line(1, `Supplemental Groups Strategy: ${textAt(object, 'supplementalGroups', 'type')}\t`)
    .line(2, `Ranges:\t${ranges('supplementalGroups')}`)
    .toString();
}
