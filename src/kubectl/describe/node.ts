/** `describe node`. Source: the output of kubectl 1.36. */
import { formatQuantity, parseQuantity, type Quantity } from '../../base/quantity.ts';
import { ageOf } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { type Events, labelLines, Page, timeAt } from './page.ts';

const ROLE = 'node-role.kubernetes.io/';
const STANDARD: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods']);

export interface NodeRelated {
  readonly now: number;
  readonly events: Events;
  /** Pods on the node that have not ended; undefined if the user may not read them. */
  readonly pods: readonly AnyObject[] | undefined;
  /** The node's lease, or the error of the request for it. */
  readonly lease: AnyObject | Error;
}

/** Time of a condition. A missing time is printed as Go's zero time. */
const timeOf = (condition: unknown, field: string): string =>
  textAt(condition, field) === '' ? 'Mon, 01 Jan 0001 00:00:00 +0000' : timeAt(condition, field);

export function describeNode(node: AnyObject, { now, events, pods, lease }: NodeRelated): string {
  const labels = mapAt(node, 'metadata', 'labels');
  const roles = Object.keys(labels).flatMap((key) =>
    key.startsWith(ROLE) && key.length > ROLE.length ? [key.slice(ROLE.length)] : [],
  );
  const page = labelLines(
    new Page().line(0, `Name:\t${node.metadata?.name ?? ''}`).required(0, 'Roles', roles.sort().join(',')),
    node,
  );
  page.line(0, `CreationTimestamp:\t${timeAt(node, 'metadata', 'creationTimestamp')}`);
  page.lines(
    'Taints',
    listAt(node, 'spec', 'taints').map(
      (taint) =>
        `${textAt(taint, 'key')}${textAt(taint, 'value') === '' ? '' : `=${textAt(taint, 'value')}`}:${textAt(taint, 'effect')}`,
    ),
  );
  page.line(0, `Unschedulable:\t${fieldAt(node, 'spec', 'unschedulable') === true}`);
  if (lease instanceof Error) page.line(0, `Lease:\tFailed to get lease: ${lease.message}`);
  else page.line(0, 'Lease:');
  for (const [title, field] of [
    ['HolderIdentity', 'holderIdentity'],
    ['AcquireTime', 'acquireTime'],
    ['RenewTime', 'renewTime'],
  ] as const) {
    if (lease instanceof Error) break;
    const value = textAt(lease, 'spec', field);
    page.line(
      1,
      `${title}:\t${value === '' ? '<unset>' : field === 'holderIdentity' ? value : timeAt(lease, 'spec', field)}`,
    );
  }
  const conditions = listAt(node, 'status', 'conditions');
  if (conditions.length > 0)
    page
      .line(0, 'Conditions:')
      .line(1, 'Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage')
      .line(1, '----\t------\t-----------------\t------------------\t------\t-------');
  for (const each of conditions)
    page.line(
      1,
      `${textAt(each, 'type')} \t${textAt(each, 'status')} \t${timeOf(each, 'lastHeartbeatTime')} \t${timeOf(each, 'lastTransitionTime')} \t${textAt(each, 'reason')} \t${textAt(each, 'message')}`,
    );
  page.line(0, 'Addresses:');
  for (const each of listAt(node, 'status', 'addresses'))
    page.line(1, `${textAt(each, 'type')}:\t${textAt(each, 'address')}`);
  for (const [title, field] of [
    ['Capacity', 'capacity'],
    ['Allocatable', 'allocatable'],
  ] as const) {
    const entries = Object.entries(mapAt(node, 'status', field)).sort(([left], [right]) => (left < right ? -1 : 1));
    if (entries.length > 0) page.line(0, `${title}:`);
    for (const [name, value] of entries) page.line(1, `${name}:\t${value}`);
  }
  page.line(0, 'System Info:');
  for (const [title, field] of [
    ['Machine ID', 'machineID'],
    ['System UUID', 'systemUUID'],
    ['Boot ID', 'bootID'],
    ['Kernel Version', 'kernelVersion'],
    ['OS Image', 'osImage'],
    ['Operating System', 'operatingSystem'],
    ['Architecture', 'architecture'],
    ['Container Runtime Version', 'containerRuntimeVersion'],
    ['Kubelet Version', 'kubeletVersion'],
  ] as const)
    page.line(1, `${title}:\t${textAt(node, 'status', 'nodeInfo', field)}`);
  page.field(0, 'PodCIDR', textAt(node, 'spec', 'podCIDR'));
  const ranges = fieldAt(node, 'spec', 'podCIDRs');
  page
    .field(0, 'PodCIDRs', Array.isArray(ranges) ? ranges.join(',') : '')
    .field(0, 'ProviderID', textAt(node, 'spec', 'providerID'));
  if (pods === undefined) page.line(0, 'Pods:\tnot authorized');
  else podLines(page, node, pods, now);
  return page.events(events, now).toString();
}

type Amounts = ReadonlyMap<string, Quantity>;

const ZERO: Quantity = { nanos: 0n, format: 'DecimalSI' };

function podLines(page: Page, node: AnyObject, pods: readonly AnyObject[], now: number): void {
  const room = mapAt(node, 'status', 'allocatable');
  const share = (amount: Quantity, name: string): string => {
    const all = parseQuantity(room[name] ?? '0').nanos;
    return `${formatQuantity(amount)} (${all === 0n ? 0 : (amount.nanos * 100n) / all}%)`;
  };
  page.line(0, `Non-terminated Pods:\t(${pods.length} in total)`);
  page.line(1, 'Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge');
  page.line(1, '---------\t----\t\t------------\t----------\t---------------\t-------------\t---');
  const totals = { requests: new Map<string, Quantity>(), limits: new Map<string, Quantity>() };
  for (const pod of pods) {
    const requests = podAmounts(pod, 'requests');
    const limits = podAmounts(pod, 'limits');
    add(totals.requests, requests);
    add(totals.limits, limits);
    const cells = [requests.get('cpu'), limits.get('cpu')].map((amount) => share(amount ?? ZERO, 'cpu'));
    const memory = [requests.get('memory'), limits.get('memory')].map((amount) => share(amount ?? ZERO, 'memory'));
    page.line(
      1,
      [
        pod.metadata?.namespace ?? '',
        pod.metadata?.name ?? '',
        '',
        ...cells,
        ...memory,
        ageOf(pod.metadata?.creationTimestamp, now),
      ].join('\t'),
    );
  }
  page
    .line(0, 'Allocated resources:')
    .line(1, '(Total limits may be over 100 percent, i.e., overcommitted.)')
    .line(1, 'Resource\tRequests\tLimits')
    .line(1, '--------\t--------\t------');
  const row = (name: string): void =>
    void page.line(
      1,
      `${name}\t${share(totals.requests.get(name) ?? ZERO, name)}\t${share(totals.limits.get(name) ?? ZERO, name)}`,
    );
  for (const name of ['cpu', 'memory', 'ephemeral-storage']) row(name);
  const others = Object.keys(room)
    .filter((name) => !STANDARD.has(name))
    .sort();
  for (const name of others.filter((each) => each.startsWith('hugepages-'))) row(name);
  for (const name of others.filter((each) => !each.startsWith('hugepages-')))
    page.line(
      1,
      `${name}\t${formatQuantity(totals.requests.get(name) ?? ZERO)}\t${formatQuantity(totals.limits.get(name) ?? ZERO)}`,
    );
}

function add(sum: Map<string, Quantity>, amounts: Amounts): void {
  for (const [name, amount] of amounts)
    sum.set(name, {
      nanos: (sum.get(name)?.nanos ?? 0n) + amount.nanos,
      format: sum.get(name)?.format ?? amount.format,
    });
}

/** Amounts of a pod: the sum of its containers and sidecars, or the amount of an init container that needs more. */
function podAmounts(pod: AnyObject, field: 'requests' | 'limits'): Amounts {
  const sum = new Map<string, Quantity>();
  const amounts = (part: unknown): Amounts =>
    new Map(Object.entries(mapAt(part, 'resources', field)).map(([name, text]) => [name, parseQuantity(text)]));
  const inits = listAt(pod, 'spec', 'initContainers');
  const sidecars = inits.filter((each) => each['restartPolicy'] === 'Always');
  for (const container of [...listAt(pod, 'spec', 'containers'), ...sidecars]) add(sum, amounts(container));
  const most = (other: Amounts): void => {
    for (const [name, amount] of other) if (amount.nanos > (sum.get(name)?.nanos ?? -1n)) sum.set(name, amount);
  };
  for (const container of inits) if (!sidecars.includes(container)) most(amounts(container));
  for (const [name, amount] of amounts(fieldAt(pod, 'spec'))) sum.set(name, amount);
  if (field === 'requests' || sum.size > 0)
    add(
      sum,
      new Map(Object.entries(mapAt(pod, 'spec', 'overhead')).map(([name, text]) => [name, parseQuantity(text)])),
    );
  return sum;
}
