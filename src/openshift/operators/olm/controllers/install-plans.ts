/**
 * Executes install plans step by step with the permissions of the operator group's service account, or of the lifecycle
 * manager if none is set. Source: operator-lifecycle-manager pkg/controller/operators/catalog (ExecutePlan) and
 * https://olm.operatorframework.io/docs/advanced-tasks/operator-scoping-with-operatorgroups/.
 */
import type { CustomResourceDefinition } from '../../../../api/generated/apiextensions/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { ApiError, isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { messageOf } from '../../../../base/errors.ts';
import {
  CRD_KIND,
  CSV_KIND,
  componentLabel,
  groupOf,
  isComponentOf,
  isProblem,
  MANAGED_LABEL,
  ownerLabels,
  ownerReference,
  packageOf,
  refusedDefinition,
  requestsAllPermissions,
} from '../core/index.ts';
import type {
  ClusterServiceVersion,
  InstallPlan,
  InstallPlanCondition,
  InstallPlanStep,
  OperatorGroup,
} from '../kinds/types.ts';
import { type ImpersonatedClient, SERVER_GROUPS } from './actor.ts';
import type { Olm } from './context.ts';
import { unpacked } from './packed-manifests.ts';

/**
 * Time for which a rejection is retried if it may be temporary, for example because a webhook's server is still
 * starting.
 */
const RETRY_MS = 60_000;
const DONE: ReadonlySet<string> = new Set(['Created', 'Present']);

export class InstallPlanPart {
  readonly #olm: Olm;

  constructor(olm: Olm) {
    this.#olm = olm;
  }

  async reconcile(key: string): Promise<void> {
    const plan = this.#olm.informers.installPlans.get(key);
    if (plan === undefined || plan.metadata?.deletionTimestamp !== undefined) return;
    const { phase = '' } = plan.status ?? {};
    if (phase === 'RequiresApproval' && plan.spec?.approved === true)
      return void (await this.#write(plan, { phase: 'Installing' }));
    if (phase === 'Installing') await this.#install(plan);
  }

  async #install(plan: InstallPlan): Promise<void> {
    const { informers, actors, now } = this.#olm;
    const namespace = plan.metadata?.namespace ?? '';
    const group = groupOf(informers.groups.list(namespace));
    if (isProblem(group)) {
      const message =
        group.reason === 'NoOperatorGroup' ? 'no operator group found that is managing this namespace' : group.message;
      // The plan is not failed, because an administrator can still create the operator group.
      if (plan.status?.message !== message) await this.#write(plan, { message });
      throw new Error(`install plan waits: ${message}`);
    }
    const account = this.#serviceAccount(group);
    if (account === 'missing') {
      const message = `service account ${group.spec?.serviceAccountName} of operator group ${group.metadata?.name} does not exist`;
      if (plan.status?.message !== message) await this.#write(plan, { message });
      throw new Error(`install plan waits: ${message}`);
    }
    const startTime = plan.status?.startTime ?? now();
    const { message: _message, ...before } = plan.status ?? {};
    const started: InstallPlan = {
      ...plan,
      status: { ...before, startTime, ...(account === undefined ? {} : { attenuatedServiceAccountRef: account }) },
    };
    const steps = (plan.status?.plan ?? []).map((each) => ({ ...each }));
    const installer = actors.installer(group);
    try {
      for (const step of steps) {
        if (DONE.has(step.status)) continue;
        step.status = await this.#carryOut(step, plan, group, installer);
      }
    } catch (error) {
      const why = messageOf(error);
      const mayPass = !isRefusal(error) && this.#olm.handle.clock.nowMs() - Date.parse(startTime) < RETRY_MS;
      if (mayPass) {
        await this.#write(started, { plan: steps, message: why });
        throw error;
      }
      await this.#finish(started, steps, 'Failed', why);
      this.#olm.handle.recorder.event(plan, 'Warning', 'InstallComponentFailed', why);
      return;
    }
    await this.#finish(started, steps, 'Complete', undefined);
  }

  #serviceAccount(group: OperatorGroup): { kind: string; namespace: string; name: string } | 'missing' | undefined {
    const name = group.spec?.serviceAccountName ?? '';
    const namespace = group.metadata?.namespace ?? '';
    if (name === '') return undefined;
    if (this.#olm.informers.serviceAccounts.get(`${namespace}/${name}`) === undefined) return 'missing';
    return { kind: 'ServiceAccount', namespace, name };
  }

  /** Executes a step and returns its new status. */
  async #carryOut(
    step: InstallPlanStep,
    plan: InstallPlan,
    group: OperatorGroup,
    installer: ImpersonatedClient,
  ): Promise<InstallPlanStep['status']> {
    const namespace = plan.metadata?.namespace ?? '';
    const object = (await unpacked(step)) as KubeObject;
    const csv = await this.#versionOf(step, namespace);
    const owner = csv === undefined ? '' : packageOf(csv);
    const labels = {
      ...object.metadata?.labels,
      ...(owner === '' ? {} : { [componentLabel(owner, namespace)]: '' }),
    };
    switch (object.kind) {
      case CSV_KIND: {
        const version = object as ClusterServiceVersion;
        const label = componentLabel(packageOf(version), namespace);
        const metadata = { ...object.metadata, labels: { ...labels, [label]: '' } };
        this.#announce(version, plan, group);
        return (await installer.ensure({ ...object, metadata })) ? 'Created' : 'Present';
      }
      case CRD_KIND:
        return this.#define(
          { ...object, metadata: { ...object.metadata, labels: { ...labels, [MANAGED_LABEL]: 'true' } } },
          csv,
          plan,
          installer,
        );
      case 'Subscription':
        return this.#created(installer, { ...object, metadata: { ...object.metadata, labels } });
      default:
    }
    const isNamespaced = object.metadata?.namespace !== undefined;
    const metadata = {
      ...object.metadata,
      labels: { ...labels, ...(csv === undefined ? {} : ownerLabels(csv)) },
      ...(isNamespaced && csv !== undefined ? { ownerReferences: [ownerReference(csv)] } : {}),
    };
    const owned = { ...object, metadata };
    // Secrets may contain user data, so existing ones are not replaced.
    if (object.kind === 'Secret') return this.#created(installer, owned);
    try {
      return (await installer.ensure(owned)) ? 'Created' : 'Present';
    } catch (error) {
      if (step.optional === true && isApiError(error, 'NotFound')) return 'NotPresent';
      throw new ApiError(
        isApiError(error) ? error.reason : 'InternalError',
        `error creating ${object.kind} ${object.metadata?.name}: ${messageOf(error)}`,
      );
    }
  }

  async #created(installer: ImpersonatedClient, object: KubeObject): Promise<string> {
    try {
      await installer.create(object);
      return 'Created';
    } catch (error) {
      if (isApiError(error, 'AlreadyExists')) return 'Present';
      throw error;
    }
  }

  /** Operator version that owns the objects of the step. */
  async #versionOf({ resolving }: InstallPlanStep, namespace: string): Promise<ClusterServiceVersion | undefined> {
    const known = this.#olm.informers.csvs.get(`${namespace}/${resolving}`);
    if (known !== undefined) return known;
    return this.#olm.actors.manager.get<ClusterServiceVersion>({
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: CSV_KIND,
      metadata: { name: resolving, namespace },
    });
  }

  /**
   * Creates or updates a custom resource definition. As in upstream, the lifecycle manager creates a new definition
   * with its own permissions. A definition that this package did not create already serves other users, so it is
   * changed only with the installer's permissions.
   */
  async #define(
    object: KubeObject,
    csv: ClusterServiceVersion | undefined,
    plan: InstallPlan,
    installer: ImpersonatedClient,
  ): Promise<string> {
    const { manager } = this.#olm.actors;
    const refused = refusedDefinition(object.metadata?.name ?? '', SERVER_GROUPS);
    if (refused !== undefined) throw new ApiError('Invalid', `${CRD_KIND} ${refused}`);
    const found = await manager.get<CustomResourceDefinition & KubeObject>(object);
    if (found === undefined) return this.#created(manager, object);
    const wanted = object as CustomResourceDefinition & KubeObject;
    const served = new Set((wanted.spec?.versions ?? []).map(({ name }) => name));
    const lost = (found.status?.storedVersions ?? []).find((each) => !served.has(each));
    if (lost !== undefined)
      throw new ApiError(
        'Invalid',
        `risk of data loss updating ${JSON.stringify(object.metadata?.name)}: new CRD removes version ${lost} that is listed as a stored version on the existing CRD`,
      );
    // The conversion is set later, when the operator version is installed, because the bundle does not contain the CA.
    const conversion = wanted.spec?.conversion ?? found.spec?.conversion;
    const spec = { ...wanted.spec, ...(conversion === undefined ? {} : { conversion }) };
    const isOwn = csv !== undefined && isComponentOf(csv, found);
    try {
      await (isOwn ? manager : installer).ensure({ ...object, spec } as KubeObject);
    } catch (error) {
      if (isOwn || !isApiError(error, 'Forbidden')) throw error;
      // Keep the existing definition. The requirements of the operator version then determine whether it suffices.
      this.#olm.handle.recorder.event(plan, 'Warning', 'DefinitionNotReplaced', messageOf(error));
    }
    return 'Present';
  }

  #announce(csv: ClusterServiceVersion, plan: InstallPlan, group: OperatorGroup): void {
    if (!requestsAllPermissions(csv) || (group.spec?.serviceAccountName ?? '') !== '') return;
    this.#olm.handle.recorder.event(
      plan,
      'Warning',
      'ClusterAdminGranted',
      `${csv.metadata?.name} is granted all permissions in the cluster; name a service account in operator group ${group.metadata?.name} to limit what is installed`,
    );
  }

  async #finish(
    plan: InstallPlan,
    steps: InstallPlanStep[],
    phase: 'Complete' | 'Failed',
    why: string | undefined,
  ): Promise<void> {
    const now = this.#olm.now();
    const installed: InstallPlanCondition = {
      type: 'Installed',
      status: why === undefined ? 'True' : 'False',
      lastUpdateTime: now,
      lastTransitionTime: now,
      ...(why === undefined ? {} : { reason: 'InstallComponentFailed', message: why }),
    };
    const others = (plan.status?.conditions ?? []).filter(({ type }) => type !== 'Installed');
    await this.#write(plan, {
      phase,
      plan: steps,
      conditions: [...others, installed],
      ...(why === undefined ? {} : { message: why }),
    });
  }

  #write(plan: InstallPlan, change: NonNullable<InstallPlan['status']>): Promise<InstallPlan> {
    const status = { ...plan.status, ...change };
    return this.#olm.handle.writer(resources.installPlans).update({ ...plan, status }, { subresource: 'status' });
  }
}

/** Whether the error is permanent, so that a retry would fail in the same way. */
function isRefusal(error: unknown): boolean {
  return ['Forbidden', 'Invalid', 'BadRequest', 'RequestEntityTooLarge'].some((reason) =>
    isApiError(error, reason as 'Forbidden'),
  );
}
