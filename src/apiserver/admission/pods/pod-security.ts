/**
 * Checks pods against the profiles in the labels of their namespace. Workload templates only cause warnings. The checks
 * are in apiserver/core/pod-security. Source: k8s.io/pod-security-admission/admission,
 * plugin/pkg/admission/security/podsecurity.
 */

import type { Container, Pod, PodSpec } from '../../../api/generated/core/v1.ts';
import type { ObjectMeta } from '../../../api/generated/meta/v1.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { PodLike, Violation } from '../../core/pod-security/check.ts';
import { detailsText, evaluatePod } from '../../core/pod-security/evaluate.ts';
import { ExistingPods, MAX_EXISTING_PODS } from '../../core/pod-security/existing.ts';
import {
  compareLevels,
  isFullyPrivileged,
  isSameLevelVersion,
  LABEL_PREFIX,
  type LabelProblem,
  type LevelVersion,
  levelLabel,
  levelVersionText,
  MODES,
  type Policy,
  policyOf,
  versionLabel,
} from '../../core/pod-security/policy.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { type NamespaceSource, namespaceOf } from '../matching.ts';
import type { PodSecuritySettings } from '../settings.ts';
import { forbid, isFor } from '../subject.ts';

export interface PodSecurityDeps {
  readonly settings: PodSecuritySettings;
  readonly namespaces: NamespaceSource;
  pods(namespace: string): readonly CachedObject[];
  readonly clock: Clock;
}

/** Subresources that do not change the security-relevant fields of a pod. */
const HARMLESS = new Set(['attach', 'binding', 'eviction', 'exec', 'log', 'portforward', 'proxy', 'status']);
const WORKLOADS = new Set([
  'replicationcontrollers.',
  'podtemplates.',
  'replicasets.apps',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'jobs.batch',
  'cronjobs.batch',
]);
const SECCOMP_ANNOTATION = 'container.seccomp.security.alpha.kubernetes.io/';
/** Time limit for checking existing pods, and the longest time without yielding to the event loop. */
const SEARCH_MS = 1_000;
const SLICE_MS = 4;

export function podSecurity(deps: PodSecurityDeps): AdmissionPlugin {
  const admission = new PodSecurity(deps);
  return {
    name: 'PodSecurity',
    resources: ['pods', 'namespaces', ...WORKLOADS],
    validate(request): void | Promise<void> {
      if (request.object === undefined || (request.operation !== 'CREATE' && request.operation !== 'UPDATE')) return;
      if (isFor(request, '', 'pods')) return admission.validatePod(request);
      if (request.subresource !== '') return;
      if (isFor(request, '', 'namespaces')) return admission.validateNamespace(request);
      const { plural, definition } = request.kind;
      return WORKLOADS.has(`${plural}.${definition.group}`) ? admission.validateWorkload(request) : undefined;
    },
  };
}

type ReadPolicy = ReturnType<typeof policyOf>;

class PodSecurity {
  readonly #deps: PodSecurityDeps;

  constructor(deps: PodSecurityDeps) {
    this.#deps = deps;
  }

  /** Checks the pod of a request. Usually synchronous, because the namespace is in the watch cache. */
  validatePod(request: AdmissionRequest): void | Promise<void> {
    if (HARMLESS.has(request.subresource) || this.#isExempt(request)) return;
    return this.#withPolicy(request, (read) => this.#evaluatePod(request, read));
  }

  #evaluatePod(request: AdmissionRequest, read: ReadPolicy): void {
    if (read.problems.length === 0 && isFullyPrivileged(read.policy)) {
      annotate(request, 'enforce-policy', levelVersionText(read.policy.enforce));
      return;
    }
    const pod = request.object as Pod;
    if (request.operation === 'UPDATE' && !isSignificant(pod, request.old as Pod)) return;
    this.#evaluate(request, read, podLike(pod.metadata, pod.spec), true);
  }

  validateWorkload(request: AdmissionRequest): void | Promise<void> {
    if (this.#isExempt(request)) return;
    return this.#withPolicy(request, (read) => this.#evaluateWorkload(request, read));
  }

  #evaluateWorkload(request: AdmissionRequest, read: ReadPolicy): void {
    const { audit, warn } = read.policy;
    if (read.problems.length === 0 && warn.level === 'privileged' && audit.level === 'privileged') return;
    const template = templateOf(request.object as KubeObject);
    if (template?.spec === undefined) return;
    this.#evaluate(request, read, podLike(template.metadata, template.spec), false);
  }

  async validateNamespace(request: AdmissionRequest): Promise<void> {
    const { defaults, exemptions } = this.#deps.settings;
    const labels = request.object?.metadata?.labels;
    const name = request.object?.metadata?.name ?? '';
    const now = policyOf(labels, defaults);
    if (request.operation === 'CREATE') {
      if (now.problems.length > 0) throw badLabels(request, name, now.problems);
      if (exemptions.namespaces.has(name)) this.#warnExempt(request, name, now.policy);
      return;
    }
    const before = policyOf(request.old?.metadata?.labels, defaults);
    // Labels that were already invalid are accepted; otherwise other fields of the namespace could not be updated.
    if (now.problems.length > 0 && JSON.stringify(now.problems) !== JSON.stringify(before.problems)) {
      throw badLabels(request, name, now.problems);
    }
    const { enforce } = now.policy;
    const old = before.policy.enforce;
    if (isSameLevelVersion(enforce, old) || enforce.level === 'privileged') return;
    if (enforce.version === old.version && compareLevels(enforce.level, old.level) <= 0) return;
    if (exemptions.namespaces.has(name)) this.#warnExempt(request, name, now.policy);
    else request.warnings.push(...(await this.#existingPods(name, enforce)));
  }

  /** Reports whether the user or the namespace is exempt. The labels of the namespace do not matter then. */
  #isExempt(request: AdmissionRequest): boolean {
    const { namespaces, usernames } = this.#deps.settings.exemptions;
    const why = namespaces.has(request.namespace) ? 'namespace' : usernames.has(request.user.name) ? 'user' : undefined;
    if (why !== undefined) annotate(request, 'exempt', why);
    return why !== undefined;
  }

  #withPolicy(request: AdmissionRequest, evaluate: (read: ReadPolicy) => void): void | Promise<void> {
    const { namespaces, settings } = this.#deps;
    const cached = namespaces.cached(request.namespace);
    if (cached !== undefined) return evaluate(policyOf(cached.labels(), settings.defaults));
    return namespaceOf(request, namespaces).then((namespace) =>
      evaluate(policyOf(namespace?.metadata?.labels, settings.defaults)),
    );
  }

  #evaluate(request: AdmissionRequest, { policy, problems }: ReadPolicy, pod: PodLike, enforced: boolean): void {
    if (this.#deps.settings.exemptions.runtimeClasses.has(pod.spec.runtimeClassName ?? '')) {
      annotate(request, 'exempt', 'runtimeClass');
      return;
    }
    if (problems.length > 0) annotate(request, 'error', `Failed to parse policy: ${problemsText(problems)}`);
    const cached = new Map<string, readonly Violation[]>();
    /** Modes with the same profile share one evaluation. */
    const violations = (profile: LevelVersion): string => {
      const key = levelVersionText(profile);
      const found = cached.get(key) ?? evaluatePod(profile, pod);
      cached.set(key, found);
      return found.length === 0 ? '' : `violate PodSecurity ${JSON.stringify(key)}: ${detailsText(found)}`;
    };
    if (enforced) annotate(request, 'enforce-policy', levelVersionText(policy.enforce));
    const audited = violations(policy.audit);
    if (audited !== '') annotate(request, 'audit-violations', `would ${audited}`);
    const refused = enforced ? violations(policy.enforce) : '';
    if (refused !== '') throw forbid(request, refused.replace('violate', 'violates'));
    const warned = violations(policy.warn);
    if (warned !== '') request.warnings.push(`would ${warned}`);
  }

  #warnExempt(request: AdmissionRequest, name: string, policy: Policy): void {
    const { defaults } = this.#deps.settings;
    if (isFullyPrivileged(policy) || MODES.every((mode) => isSameLevelVersion(policy[mode], defaults[mode]))) return;
    const labels = request.object?.metadata?.labels ?? {};
    const given = MODES.filter(
      (mode) =>
        policy[mode].level !== 'privileged' &&
        (Object.hasOwn(labels, levelLabel(mode)) || Object.hasOwn(labels, versionLabel(mode))),
    ).map((mode) => `${mode}=${levelVersionText(policy[mode])}`);
    request.warnings.push(
      `namespace ${JSON.stringify(name)} is exempt from Pod Security, and the policy (${given.join(', ')}) will be ignored`,
    );
  }

  /** Checks one pod of each controller first, because the other pods of a controller are alike. */
  async #existingPods(namespace: string, enforce: LevelVersion): Promise<string[]> {
    const { clock, settings } = this.#deps;
    const review = new ExistingPods(enforce);
    const objects = this.#deps.pods(namespace);
    const deadline = clock.monotonicMs() + SEARCH_MS;
    let slice = clock.monotonicMs();
    const mayGoOn = async (): Promise<boolean> => {
      if (clock.monotonicMs() - slice > SLICE_MS) {
        await new Promise<void>((resolve) => {
          clock.setTimer(0, resolve);
        });
        slice = clock.monotonicMs();
      }
      return review.checked < MAX_EXISTING_PODS && clock.monotonicMs() < deadline;
    };
    const alike: Pod[] = [];
    const controllers = new Set<string>();
    let total = objects.length;
    const check = ({ metadata, spec }: Pod): void => review.check(metadata?.name ?? '', podLike(metadata, spec));
    for (const object of objects) {
      if (!(await mayGoOn())) break;
      const pod = object.parse<Pod>();
      const controller = pod.metadata?.ownerReferences?.find((owner) => owner.controller === true)?.uid;
      if (settings.exemptions.runtimeClasses.has(pod.spec?.runtimeClassName ?? '')) total--;
      else if (controller !== undefined && controllers.has(controller)) alike.push(pod);
      else check(pod);
      if (controller !== undefined) controllers.add(controller);
    }
    for (const pod of alike) {
      if (!(await mayGoOn())) break;
      check(pod);
    }
    return review.warnings(namespace, total);
  }
}

const annotate = (request: AdmissionRequest, key: string, value: string): void =>
  request.annotate?.(`${LABEL_PREFIX}${key}`, value);

const problemErrors = (problems: readonly LabelProblem[]) =>
  problems.map(({ label, value, message }) => fieldError.invalid(`metadata.labels[${label}]`, value, message));

const badLabels = (request: AdmissionRequest, name: string, problems: readonly LabelProblem[]) =>
  invalid(request.kind.definition, name, problemErrors(problems));

function problemsText(problems: readonly LabelProblem[]): string {
  const texts = problems.map(
    ({ label, value, message }) => `metadata.labels[${label}]: Invalid value: ${JSON.stringify(value)}: ${message}`,
  );
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

function podLike(metadata: ObjectMeta | undefined, spec: PodSpec | undefined): PodLike {
  return { annotations: metadata?.annotations ?? {}, spec: spec ?? { containers: [] } };
}

interface Template {
  readonly metadata?: ObjectMeta;
  readonly spec?: PodSpec;
}

/** The pod template of a workload. Undefined if the workload has no template. */
function templateOf(object: KubeObject): Template | undefined {
  const { template, spec } = object as {
    template?: Template;
    spec?: { template?: Template; jobTemplate?: { spec?: { template?: Template } } };
  };
  return template ?? spec?.jobTemplate?.spec?.template ?? spec?.template;
}

/**
 * Reports whether an update can change the result. Only images, ephemeral containers and the old seccomp annotation can
 * change it.
 */
function isSignificant(pod: Pod, old: Pod): boolean {
  const now = pod.spec;
  const before = old.spec;
  if (now === undefined || before === undefined) return true;
  const changed = (container: Container, other: Container | undefined): boolean => {
    const key = `${SECCOMP_ANNOTATION}${container.name}`;
    return container.image !== other?.image || pod.metadata?.annotations?.[key] !== old.metadata?.annotations?.[key];
  };
  for (const field of ['containers', 'initContainers'] as const) {
    const [ours, theirs] = [now[field] ?? [], before[field] ?? []];
    if (ours.length !== theirs.length) return true;
    if (ours.some((container, index) => changed(container, theirs[index]))) return true;
  }
  return (now.ephemeralContainers ?? []).some((container) => {
    const same = before.ephemeralContainers?.find(({ name }) => name === container.name);
    return same === undefined || changed(container as Container, same as Container);
  });
}
