/**
 * Explains why a pod does not run, from its status, its events and the nodes. Each finding has a cause, evidence and a
 * fix. Texts of the API are quoted without changes; views must show them as text only.
 */

import type { ContainerStatus, Event, Node, Pod } from '../../../api/generated/core/v1.ts';
import { countText } from '../../../base/text/count-text.ts';
import { ageText } from '../format.ts';

export type Severity = 'info' | 'warning' | 'error';

export interface Finding {
  readonly severity: Severity;
  /** The cause, as one sentence. */
  readonly title: string;
  /** Evidence, such as a message of the API. */
  readonly detail: string;
  readonly fix: string;
}

export interface PodFacts {
  readonly pod: Pod;
  readonly events: readonly Event[];
  readonly nodes: readonly Node[];
  readonly nowMs: number;
}

/** File names have at most 255 characters. That of a log directory contains a UID of 36 characters and 2 separators. */
const MAX_NAMES_LENGTH = 217;

const finding = (severity: Severity, title: string, detail: string, fix: string): Finding => ({
  severity,
  title,
  detail,
  fix,
});

/** Findings, most important first. Empty if there is no problem. */
export function explainPod(facts: PodFacts): readonly Finding[] {
  const { pod, nowMs } = facts;
  if (pod.metadata?.deletionTimestamp !== undefined) return [explainDeletion(pod, nowMs)];
  if (pod.status?.phase === 'Succeeded') return [];
  const findings = [
    ...explainEnd(pod),
    ...explainScheduling(facts),
    ...explainVolumes(facts),
    ...explainSandbox(facts),
    ...explainContainers(facts),
    ...explainReadiness(facts),
  ];
  const order: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 };
  return findings.sort((a, b) => order[a.severity] - order[b.severity]);
}

function explainDeletion(pod: Pod, nowMs: number): Finding {
  const finalizers = pod.metadata?.finalizers ?? [];
  const since = ageText(pod.metadata?.deletionTimestamp, nowMs);
  if (finalizers.length > 0)
    return finding(
      'warning',
      'The pod is being deleted and waits for a finalizer.',
      `finalizers: ${finalizers.join(', ')}`,
      'The controller that owns the finalizer must remove it; check that this controller runs.',
    );
  return finding(
    'info',
    'The pod is being deleted.',
    `grace period ${pod.metadata?.deletionGracePeriodSeconds ?? 30} s, ended ${since} ago`,
    'If it stays, check that its node is ready.',
  );
}

function explainEnd({ status }: Pod): Finding[] {
  if (status?.phase !== 'Failed') return [];
  const { reason = '', message = '' } = status;
  if (reason === 'Evicted')
    return [
      finding(
        'error',
        'The node evicted the pod because a resource ran short.',
        message,
        'Free memory or disk on the node, or set requests that match the use of the pod.',
      ),
    ];
  if (reason === 'DeadlineExceeded')
    return [finding('error', 'The pod ran longer than allowed.', message, 'Raise activeDeadlineSeconds.')];
  if (reason === '' && message === '') return [];
  return [finding('error', `The pod failed: ${reason || 'no reason given'}.`, message, 'Read the events and logs.')];
}

function explainScheduling({ pod, nodes }: PodFacts): Finding[] {
  if ((pod.spec?.nodeName ?? '') !== '') return [];
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) return [explainGates(gates.map(({ name = '' }) => name))];
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  const message = condition?.message ?? '';
  if (condition?.status !== 'False')
    return [finding('info', 'The pod waits for the scheduler.', message, 'If it stays, check the scheduler.')];
  const findings = SCHEDULING.filter(({ pattern }) => pattern.test(message)).map(({ title, fix }) =>
    finding('error', title(pod, nodes), message, fix),
  );
  return findings.length > 0
    ? findings
    : [finding('error', 'No node can run the pod.', message, 'Compare the pod with the nodes that the message names.')];
}

function explainGates(gates: readonly string[]): Finding {
  const rig = gates.find((gate) => gate.startsWith('rig.hyperedge.dev/'));
  return rig === undefined
    ? finding(
        'info',
        'The pod is held back by a scheduling gate.',
        gates.join(', '),
        'The controller that set the gate removes it when its condition holds.',
      )
    : finding(
        'info',
        `The pod waits until the rig claim ${rig.slice('rig.hyperedge.dev/'.length)} is granted.`,
        gates.join(', '),
        'See the queue of the rig on the page Rigs.',
      );
}

interface SchedulingRule {
  readonly pattern: RegExp;
  readonly title: (pod: Pod, nodes: readonly Node[]) => string;
  readonly fix: string;
}

const SCHEDULING: readonly SchedulingRule[] = [
  {
    pattern: /Insufficient /,
    title: (pod) => `No node has enough free resources: the pod requests ${requestsText(pod)}.`,
    fix: 'Lower the requests, remove other pods, or add a node.',
  },
  {
    pattern: /untolerated taint/,
    title: (_, nodes) => `Nodes have taints that the pod does not tolerate${taintsText(nodes)}.`,
    fix: 'Add a toleration to the pod, or remove the taint from the node.',
  },
  {
    pattern: /node affinity\/selector|node selector/,
    title: (pod) => `No node has the labels that the pod selects${selectorText(pod)}.`,
    fix: 'Label a node, or change nodeSelector or nodeAffinity of the pod.',
  },
  {
    pattern: /were unschedulable/,
    title: (_, nodes) =>
      `Nodes are cordoned: ${
        nodes
          .filter(({ spec }) => spec?.unschedulable === true)
          .map(nameOf)
          .join(', ') || 'see the message'
      }.`,
    fix: 'Uncordon a node.',
  },
  {
    pattern: /didn't match pod (?:anti-)?affinity|pod topology spread/,
    title: () => 'The rules of the pod about other pods fit no node.',
    fix: 'Relax podAffinity, podAntiAffinity or topologySpreadConstraints, or add a node.',
  },
  {
    pattern: /free ports/,
    title: () => 'The host port of the pod is in use on every node.',
    fix: 'Use another hostPort, or a service instead.',
  },
  {
    pattern: /persistentvolumeclaim|PersistentVolume|volume node affinity/i,
    title: () => 'A volume of the pod is missing or cannot be used on the nodes.',
    fix: 'See the claims on the page Storage.',
  },
  {
    pattern: /Too many pods/,
    title: () => 'The nodes run as many pods as they may.',
    fix: 'Remove pods, or add a node.',
  },
];

const nameOf = ({ metadata }: Node): string => metadata?.name ?? '';

function requestsText({ spec }: Pod): string {
  const texts = (spec?.containers ?? []).flatMap(({ name = '', resources }) =>
    Object.entries(resources?.requests ?? {}).map(([resource, amount]) => `${resource} ${String(amount)} (${name})`),
  );
  return texts.length === 0 ? 'nothing' : texts.join(', ');
}

function taintsText(nodes: readonly Node[]): string {
  const taints = nodes.flatMap((node) =>
    (node.spec?.taints ?? [])
      .filter(({ effect }) => effect !== 'PreferNoSchedule')
      .map(({ key = '', value = '' }) => `${nameOf(node)} has ${value === '' ? key : `${key}=${value}`}`),
  );
  return taints.length === 0 ? '' : ` (${taints.slice(0, 3).join(', ')})`;
}

function selectorText({ spec }: Pod): string {
  const labels = Object.entries(spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
  return labels.length === 0 ? '' : ` (${labels.join(', ')})`;
}

/** Events of the pod with one of the reasons, newest last. */
function eventsOf({ events }: PodFacts, ...reasons: readonly string[]): readonly Event[] {
  return events
    .filter(({ reason = '' }) => reasons.includes(reason))
    .toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)));
}

const timeOf = ({ lastTimestamp, eventTime, metadata }: Event): string =>
  lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? '';

function isStarting({ status }: Pod): boolean {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].some(
    ({ state }) => state?.running === undefined,
  );
}

function explainVolumes(facts: PodFacts): Finding[] {
  if (!isStarting(facts.pod) && facts.pod.status?.containerStatuses !== undefined) return [];
  const last = eventsOf(facts, 'FailedMount', 'FailedAttachVolume', 'FailedMapVolume').at(-1);
  if (last === undefined) return [];
  const message = last.message ?? '';
  const missing = /(configmap|secret) "([^"]+)" not found|references non-existent (?:config|secret) key/.exec(message);
  if (missing !== null)
    return [
      finding(
        'error',
        missing[1] === undefined
          ? 'A volume uses a key that its config map or secret does not have.'
          : `A volume uses the ${missing[1] === 'secret' ? 'secret' : 'config map'} ${missing[2] ?? ''}, which does not exist.`,
        message,
        'Create it in the namespace of the pod, or correct the name in the pod.',
      ),
    ];
  return [
    finding(
      'error',
      'A volume of the pod cannot be mounted.',
      message,
      'See the claims on the page Storage. The kubelet tries again by itself.',
    ),
  ];
}

function explainSandbox(facts: PodFacts): Finding[] {
  const { metadata, status } = facts.pod;
  const last = eventsOf(facts, 'FailedCreatePodSandBox').at(-1);
  if (last === undefined || (!isStarting(facts.pod) && status?.containerStatuses !== undefined)) return [];
  const message = last.message ?? '';
  if (/ENAMETOOLONG|name too long/i.test(message)) {
    const { name = '', namespace = '' } = metadata ?? {};
    return [
      finding(
        'error',
        `The names of the pod and its namespace are too long: they have ${name.length + namespace.length} characters together.`,
        message,
        `The log directory of a pod contains both names. Create the pod with at most ${MAX_NAMES_LENGTH} characters in them.`,
      ),
    ];
  }
  return [
    finding(
      'error',
      'The network or the sandbox of the pod cannot be created.',
      message,
      'Run the doctor on the node.',
    ),
  ];
}

function explainContainers(facts: PodFacts): Finding[] {
  const { status } = facts.pod;
  const init = (status?.initContainerStatuses ?? []).map((each) => explainContainer(each, 'Init container', facts));
  const main = (status?.containerStatuses ?? []).map((each) => explainContainer(each, 'Container', facts));
  const debug = (status?.ephemeralContainerStatuses ?? [])
    .filter(({ state }) => state?.waiting !== undefined)
    .map((each) => explainContainer(each, 'Debug container', facts));
  return [...init, ...main, ...debug].filter((each) => each !== undefined);
}

function explainContainer(container: ContainerStatus, kind: string, facts: PodFacts): Finding | undefined {
  const { name = '', state, lastState, restartCount = 0, image = '' } = container;
  const subject = `${kind} ${name}`;
  const { reason = '', message = '' } = state?.waiting ?? {};
  switch (reason) {
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'ErrImageNeverPull':
    case 'InvalidImageName':
      return explainPull(subject, image, reason, message, facts);
    case 'CreateContainerConfigError':
      return explainConfiguration(subject, message);
    case 'CreateContainerError':
    case 'RunContainerError':
      return finding('error', `${subject} cannot be started.`, message, 'Check command, working directory and user.');
    case 'CrashLoopBackOff':
      return explainExit(`${subject} ends again and again`, restartCount, lastState, message, facts);
  }
  const ended = state?.terminated;
  if (ended !== undefined && (ended.exitCode ?? 0) !== 0)
    return explainExit(`${subject} failed`, restartCount, state, message, facts);
  if (restartCount > 0 && state?.running !== undefined && (lastState?.terminated?.exitCode ?? 0) !== 0) {
    const { severity: _severity, ...rest } = explainExit(
      `${subject} was restarted`,
      restartCount,
      lastState,
      '',
      facts,
    );
    return { severity: 'warning', ...rest };
  }
  return undefined;
}

function explainPull(subject: string, image: string, reason: string, message: string, facts: PodFacts): Finding {
  // Older kubelets state the cause only in an event. A later event has only the reason, as in `Error: ErrImagePull`.
  const event = eventsOf(facts, 'Failed').findLast(({ message: text = '' }) => text.startsWith('Failed to pull image'));
  const isVague = reason === 'ImagePullBackOff' && !message.includes('ErrImagePull: ');
  const detail = isVague ? (event?.message ?? message) : message;
  const rules: readonly (readonly [RegExp, string, string])[] = [
    [
      /InvalidImageName|invalid reference|couldn't parse/i,
      'is not a valid image name',
      'Correct the image of the container.',
    ],
    [
      /NeverPull|pull policy/i,
      'is not on the node, and the pull policy is Never',
      'Upload the image on the page Storage and images, or change imagePullPolicy.',
    ],
    [/unauthori[sz]ed|denied|401|403/i, 'needs a login', 'Add a pull secret for the registry to the service account.'],
    [/not found|manifest unknown|404/i, 'does not exist in the registry', 'Correct the name or the tag of the image.'],
    [
      /x509|certificate/i,
      'comes from a registry whose certificate is not trusted',
      'Add the certificate authority of the registry.',
    ],
    [
      /no such host|dial|timeout|refused|unreachable|cannot be reached|EAI_AGAIN|ENOTFOUND/i,
      'cannot be fetched: the registry cannot be reached',
      'Check network, DNS and proxy of the node, or upload the image on the page Storage and images.',
    ],
    [
      /toomanyrequests|429/i,
      'cannot be fetched: the registry limits the rate',
      'Wait, log in to the registry, or use a mirror.',
    ],
    [/no space|ENOSPC/i, 'does not fit on the disk of the node', 'Remove images on the node, or enlarge its disk.'],
  ];
  const text = `${reason} ${detail}`;
  const [, problem, fix] = rules.find(([pattern]) => pattern.test(text)) ?? [
    undefined,
    'cannot be pulled',
    'Read the message of the registry.',
  ];
  return finding('error', `${subject}: the image ${image} ${problem}.`, detail, fix);
}

function explainConfiguration(subject: string, message: string): Finding {
  const [, kind, name] = /(configmap|secret) "([^"]+)" not found/.exec(message) ?? [];
  if (kind !== undefined)
    return finding(
      'error',
      `${subject} needs the ${kind === 'secret' ? 'secret' : 'config map'} ${name ?? ''}, which does not exist.`,
      message,
      'Create it in the namespace of the pod, or correct the name in the pod.',
    );
  const [, key] = /find key (\S+) in/.exec(message) ?? [];
  if (key !== undefined)
    return finding(
      'error',
      `${subject} needs the key ${key}, which its config map or secret does not have.`,
      message,
      'Add the key, or correct its name in the pod.',
    );
  return finding('error', `${subject} has a configuration that the node refuses.`, message, 'Correct the pod.');
}

const EXIT_CODES: Readonly<Record<number, readonly [text: string, fix: string]>> = {
  0: [
    'It ends without an error, but a container of this pod must keep running',
    'Use a Job, or a command that does not end.',
  ],
  1: ['The program reports an error', 'Read its logs of the previous run.'],
  2: ['The program was called wrongly', 'Check command and args.'],
  126: ['The command cannot be executed', 'Check the permissions of the file and its architecture.'],
  127: ['The command was not found in the image', 'Check command and args.'],
  134: ['The program aborted (SIGABRT)', 'Read its logs of the previous run.'],
  137: ['The program was killed (SIGKILL)', 'Look for a failed liveness probe or a memory limit.'],
  139: ['The program accessed invalid memory (SIGSEGV)', 'Check that the image fits the architecture of the node.'],
  143: ['The program was ended (SIGTERM)', 'Look for a failed liveness probe.'],
};

function explainExit(
  subject: string,
  restarts: number,
  state: ContainerStatus['state'],
  message: string,
  facts: PodFacts,
): Finding {
  const ended = state?.terminated;
  const code = ended?.exitCode ?? 0;
  const times = restarts > 0 ? ` (${countText(restarts, 'restart')})` : '';
  const detail = [ended?.message, message].filter((each) => each !== undefined && each !== '').join('\n');
  if (ended?.reason === 'OOMKilled')
    return finding(
      'error',
      `${subject}${times}: it used more memory than its limit.`,
      detail,
      'Raise resources.limits.memory, or reduce the memory that the program uses.',
    );
  const probe = eventsOf(facts, 'Unhealthy').findLast(({ message: text = '' }) => /^(?:Liveness|Startup)/.test(text));
  if (probe !== undefined && (code === 137 || code === 143))
    return finding(
      'error',
      `${subject}${times}: its ${/^Liveness/.test(probe.message ?? '') ? 'liveness' : 'startup'} probe failed.`,
      probe.message ?? '',
      'Check port and path of the probe, or give the program more time (initialDelaySeconds, failureThreshold).',
    );
  const [text, fix] = EXIT_CODES[code] ?? ['The program ended with an error', 'Read its logs of the previous run.'];
  return finding('error', `${subject}${times}: exit code ${code}. ${text}.`, detail, fix);
}

function explainReadiness(facts: PodFacts): Finding[] {
  const { pod } = facts;
  const findings: Finding[] = [];
  for (const { name = '', ready, state } of pod.status?.containerStatuses ?? []) {
    if (ready === true || state?.running === undefined) continue;
    const probe = eventsOf(facts, 'Unhealthy').findLast(({ message = '' }) => /^(?:Readiness|Startup)/.test(message));
    findings.push(
      probe === undefined
        ? finding('info', `Container ${name} runs and is not ready yet.`, '', 'Wait for its readiness probe.')
        : finding(
            'warning',
            `Container ${name} runs, but its ${/^Startup/.test(probe.message ?? '') ? 'startup' : 'readiness'} probe fails, so services do not use it.`,
            probe.message ?? '',
            'Check port and path of the probe, and the logs of the container.',
          ),
    );
  }
  for (const { conditionType = '' } of pod.spec?.readinessGates ?? [])
    if (!(pod.status?.conditions ?? []).some(({ type, status }) => type === conditionType && status === 'True'))
      findings.push(
        finding('info', `The pod waits for the readiness gate ${conditionType}.`, '', 'Another controller sets it.'),
      );
  return findings;
}

/** Explains why a workload has fewer pods than it should, from its events and conditions. */
export function explainMissingPods(messages: readonly string[]): Finding | undefined {
  const rules: readonly (readonly [RegExp, string, string])[] = [
    [
      /exceeded quota/,
      'The quota of the namespace allows no further pod.',
      'Raise the quota, or remove other objects.',
    ],
    [
      /must specify .*(?:limits|requests)/,
      'The quota of the namespace requires requests and limits.',
      'Set resources, or a LimitRange with defaults.',
    ],
    [
      /violates PodSecurity|security context constraint/,
      'The security policy of the namespace refuses the pod.',
      'Change the security context of the pod, or the policy.',
    ],
    [
      /serviceaccount .*not found/i,
      'The service account of the pod does not exist.',
      'Create it, or correct serviceAccountName.',
    ],
    [/admission webhook/, 'A webhook refuses the pod.', 'Read the message of the webhook.'],
  ];
  for (const message of messages)
    for (const [pattern, title, fix] of rules) if (pattern.test(message)) return finding('error', title, message, fix);
  return undefined;
}

/** Short status for a list: `Running`, `CrashLoopBackOff`, `Init:1/2`, `Terminating`. Source: kubectl's printer. */
export function podStatusText(pod: Pod): string {
  const { status, metadata, spec } = pod;
  if (metadata?.deletionTimestamp !== undefined) return 'Terminating';
  if (status?.reason !== undefined && status.reason !== '') return status.reason;
  const init = status?.initContainerStatuses ?? [];
  const blocking = init.findIndex(({ state, started }) => state?.terminated?.exitCode !== 0 && started !== true);
  if (blocking >= 0) {
    const { state } = init[blocking] ?? {};
    const reason = state?.waiting?.reason ?? state?.terminated?.reason ?? '';
    return reason === '' || reason === 'PodInitializing'
      ? `Init:${blocking}/${spec?.initContainers?.length ?? init.length}`
      : `Init:${reason}`;
  }
  for (const { state } of status?.containerStatuses ?? []) {
    const reason = state?.waiting?.reason ?? state?.terminated?.reason ?? '';
    if (reason !== '') return reason;
  }
  if ((spec?.schedulingGates ?? []).length > 0 && (spec?.nodeName ?? '') === '') return 'SchedulingGated';
  return status?.phase ?? 'Unknown';
}
