/** Explains in words why a node is not ready or short of a resource, with a fix. */
import type { Node } from '../../../api/generated/core/v1.ts';
import { conditionsOf } from '../api/resources.ts';
import type { Finding } from '../pods/explain.ts';

interface Rule {
  readonly type: string;
  readonly status: string;
  /** Messages to which the rule applies; default: all. */
  readonly message?: RegExp;
  readonly severity: Finding['severity'];
  readonly title: string;
  readonly fix: string;
}

/** The first rule that fits a condition explains it. Hosts that do not answer have a note of their own. */
const RULES: readonly Rule[] = [
  {
    type: 'Ready',
    status: 'False',
    message: /shut(?:ting)?.?down/i,
    severity: 'error',
    title: 'The host is shutting down, so it takes no new pods.',
    fix: 'Wait until it has started again. If the shutdown was not intended, check the power supply of the host.',
  },
  {
    type: 'Ready',
    status: 'False',
    message: /network|cni/i,
    severity: 'error',
    title: 'The network of the pods on this host is not ready.',
    fix: 'Press "Run doctor" below. It names the failed part of the network and its fix.',
  },
  {
    type: 'Ready',
    status: 'False',
    severity: 'error',
    title: 'The host answers, but it cannot run pods.',
    fix: 'Read the message, then press "Run doctor" below.',
  },
  {
    type: 'DiskPressure',
    status: 'True',
    severity: 'warning',
    title: 'The disk of the host is almost full, so pods are evicted and no new ones start.',
    fix: 'Delete unused images and volumes (page Storage and images), or enlarge the disk.',
  },
  {
    type: 'MemoryPressure',
    status: 'True',
    severity: 'warning',
    title: 'The host is short of memory, so pods are evicted.',
    fix: 'Look in the list of pods below for those that use much memory; lower their number or set limits.',
  },
  {
    type: 'PIDPressure',
    status: 'True',
    severity: 'warning',
    title: 'The host is short of process numbers, so pods are evicted.',
    fix: 'A pod starts too many processes: look at the pods below that restart, and set a limit.',
  },
  {
    type: 'NetworkUnavailable',
    status: 'True',
    severity: 'error',
    title: 'The network of the host is not set up.',
    fix: 'Press "Run doctor" below.',
  },
];

export function explainNode(node: Node): readonly Finding[] {
  return conditionsOf(node).flatMap(({ type, status, message }) => {
    const rule = RULES.find(
      (each) => each.type === type && each.status === status && (each.message?.test(message) ?? true),
    );
    if (rule === undefined) return [];
    return [{ severity: rule.severity, title: rule.title, detail: message, fix: rule.fix }];
  });
}
