/**
 * Evaluation of a job's pod failure and success policies. Source: upstream's pod_failure_policy.go, success_policy.go.
 */
import type {
  Job,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
} from '../../../api/generated/batch/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { Indexes } from './indexes.ts';
import { containerStatusesOf } from './pod.ts';

export interface FailureDecision {
  readonly action: string | undefined;
  /** Whether the failure counts towards back-off limits. */
  readonly counts: boolean;
  /** Message of the job's condition; only for FailJob. */
  readonly message: string;
}

const DEFAULT: FailureDecision = { action: undefined, counts: true, message: '' };

/** Applies the first rule that matches a failed pod. */
export function evaluateFailure(job: Job, pod: Pod): FailureDecision {
  const rules = job.spec?.podFailurePolicy?.rules ?? [];
  for (const [index, rule] of rules.entries()) {
    const what = matched(rule, pod);
    if (what === undefined) continue;
    const message = `${what} matching ${rule.action} rule at index ${index}`;
    return { action: rule.action, counts: rule.action !== 'Ignore', message };
  }
  return DEFAULT;
}

function matched(rule: PodFailurePolicyRule, pod: Pod): string | undefined {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  if (rule.onExitCodes !== undefined) {
    const found = matchedExit(rule.onExitCodes, pod);
    if (found === undefined) return undefined;
    return `Container ${found.name} for pod ${namespace}/${name} failed with exit code ${found.code}`;
  }
  for (const pattern of rule.onPodConditions ?? []) {
    const status = pattern.status === undefined || pattern.status === '' ? 'True' : pattern.status;
    if (pod.status?.conditions?.some((each) => each.type === pattern.type && each.status === status)) {
      return `Pod ${namespace}/${name} has condition ${pattern.type}`;
    }
  }
  return undefined;
}

function matchedExit(
  codes: PodFailurePolicyOnExitCodesRequirement,
  pod: Pod,
): { readonly name: string; readonly code: number } | undefined {
  for (const { name, state } of containerStatusesOf(pod)) {
    const code = state?.terminated?.exitCode;
    if (code === undefined || code === 0) continue;
    if (codes.containerName !== undefined && codes.containerName !== name) continue;
    if (codes.values.includes(code) === (codes.operator === 'In')) return { name, code };
  }
  return undefined;
}

/** Message of the success policy rule that is met, if any. */
export function metSuccessPolicy(job: Job, succeeded: Indexes): string | undefined {
  for (const [index, rule] of (job.spec?.successPolicy?.rules ?? []).entries()) {
    const wanted =
      rule.succeededIndexes === undefined
        ? undefined
        : Indexes.parse(rule.succeededIndexes, job.spec?.completions ?? 0);
    const reached = wanted === undefined ? succeeded.total : wanted.overlap(succeeded);
    const needed = rule.succeededCount ?? wanted?.total;
    if (needed !== undefined && reached >= needed) return `Matched rules at index ${index}`;
  }
  return undefined;
}
