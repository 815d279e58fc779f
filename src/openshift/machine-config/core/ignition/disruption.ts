/**
 * Steps that a change requires, according to the node disruption policy of OpenShift 4.17. The default action "Reboot"
 * is replaced by the least disruptive steps that apply the change: none for a file, reload and restart for a unit. Only
 * kernel arguments require a reboot. Source: openshift/api operator/v1 NodeDisruptionPolicyConfig;
 * openshift/machine-config-operator pkg/apihelpers.
 */
import type { ConfigChanges } from './difference.ts';
import type { IgnitionConfig } from './types.ts';

export type DisruptionType = 'None' | 'Drain' | 'Reload' | 'Restart' | 'DaemonReload' | 'Reboot' | 'Special';

export interface DisruptionAction {
  readonly type: DisruptionType;
  readonly reload?: { readonly serviceName: string };
  readonly restart?: { readonly serviceName: string };
}

/**
 * Type of the fields spec.nodeDisruptionPolicy and status.nodeDisruptionPolicyStatus.clusterPolicies of
 * MachineConfiguration.
 */
export interface DisruptionPolicies {
  readonly files?: readonly { readonly path: string; readonly actions: readonly DisruptionAction[] }[] | null;
  readonly units?: readonly { readonly name: string; readonly actions: readonly DisruptionAction[] }[] | null;
  readonly sshkey?: { readonly actions: readonly DisruptionAction[] } | null;
}

/** Step that applies a change. The kinds are listed in the order of execution. */
export type Step =
  | { readonly kind: 'daemon-reload' }
  | { readonly kind: 'reload' | 'restart' | 'stop' | 'try-restart'; readonly unit: string }
  | { readonly kind: 'reload-images' }
  | { readonly kind: 'restart-kubelet' }
  | { readonly kind: 'reboot' };

export interface Disruption {
  /** Whether pods are evicted before the change. */
  readonly drain: boolean;
  readonly steps: readonly Step[];
}

/**
 * Files with settings of the kubelet and its runtime, which require a restart of the kubelet, a part of the host
 * process.
 */
const KUBELET_FILES = ['/etc/kubernetes/kubelet.conf', '/etc/node-sizing-enabled.env'];
const KUBELET_DIRECTORY = '/etc/crio/crio.conf.d/';
const NONE: DisruptionAction = { type: 'None' };
const RELOAD_RUNTIME: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };
const CA_TRUST = 'coreos-update-ca-trust.service';

const DEFAULTS: Required<DisruptionPolicies> = {
  files: [
    { path: '/var/lib/kubelet/config.json', actions: [NONE] },
    { path: '/etc/machine-config-daemon/no-reboot/containers-gpg.pub', actions: [RELOAD_RUNTIME] },
    { path: '/etc/containers/policy.json', actions: [RELOAD_RUNTIME] },
    { path: '/etc/containers/registries.conf', actions: [{ type: 'Special' }] },
    { path: '/etc/containers/registries.d', actions: [RELOAD_RUNTIME] },
    { path: '/etc/nmstate/openshift', actions: [NONE] },
    {
      path: '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
      actions: [{ type: 'Restart', restart: { serviceName: CA_TRUST } }, RELOAD_RUNTIME],
    },
  ],
  units: [],
  sshkey: { actions: [NONE] },
};

/**
 * Policies of the user together with upstream's defaults. A user's policy replaces the default for the same path or
 * unit.
 */
export function clusterPolicies(user: DisruptionPolicies | undefined): Required<DisruptionPolicies> {
  const files = user?.files ?? [];
  const named = new Set(files.map(({ path }) => path));
  return {
    files: [...files, ...(DEFAULTS.files ?? []).filter(({ path }) => !named.has(path))],
    units: user?.units ?? [],
    sshkey: user?.sshkey ?? DEFAULTS.sshkey,
  };
}

/**
 * Computes the steps of a change.
 *
 * @param to The new config. It decides whether a changed unit is started or stopped.
 */
export function disruptionOf(
  changes: ConfigChanges,
  to: IgnitionConfig,
  policies: Required<DisruptionPolicies>,
): Disruption {
  const steps: Step[] = [];
  let drain = changes.kernelArguments;
  const act = (action: DisruptionAction, least: readonly Step[]): void => {
    if (action.type === 'Drain') drain = true;
    else steps.push(...stepsOf(action, least));
  };
  for (const path of changes.files) for (const action of fileActions(path, policies)) act(action, leastOfFile(path));
  for (const name of changes.units) {
    const policy = policies.units?.find((each) => each.name === name);
    for (const action of policy?.actions ?? [{ type: 'Reboot' }]) act(action, leastOfUnit(name, to));
    // systemd reads changed unit files only on a daemon-reload, so one is added to the actions of every policy.
    if (policy !== undefined) steps.push({ kind: 'daemon-reload' });
  }
  if (changes.sshKeys) for (const action of policies.sshkey?.actions ?? []) act(action, []);
  if (changes.kernelArguments) steps.push({ kind: 'reboot' });
  return { drain, steps: ordered(steps) };
}

function fileActions(path: string, { files }: DisruptionPolicies): readonly DisruptionAction[] {
  const matching = (files ?? []).filter((policy) => path === policy.path || path.startsWith(`${policy.path}/`));
  const closest = matching.reduce<(typeof matching)[number] | undefined>(
    (best, each) => (best === undefined || each.path.length > best.path.length ? each : best),
    undefined,
  );
  return closest?.actions ?? [{ type: 'Reboot' }];
}

function leastOfFile(path: string): readonly Step[] {
  if (KUBELET_FILES.includes(path) || path.startsWith(KUBELET_DIRECTORY)) return [{ kind: 'restart-kubelet' }];
  return path.startsWith('/etc/systemd/system/') ? [{ kind: 'daemon-reload' }] : [];
}

function leastOfUnit(name: string, to: IgnitionConfig): readonly Step[] {
  const unit = to.systemd?.units?.find((each) => each.name === name);
  const reload: Step = { kind: 'daemon-reload' };
  if (unit === undefined || unit.mask === true || unit.enabled === false) return [reload, { kind: 'stop', unit: name }];
  // Instances of a template can be started, but not the template itself. A unit without `enabled` is restarted only if
  // it runs.
  if (name.includes('@.')) return [reload];
  return [reload, { kind: unit.enabled === true ? 'restart' : 'try-restart', unit: name }];
}

function stepsOf(action: DisruptionAction, least: readonly Step[]): readonly Step[] {
  switch (action.type) {
    case 'Reboot':
      return least;
    case 'Special':
      return [{ kind: 'reload-images' }];
    case 'DaemonReload':
      return [{ kind: 'daemon-reload' }];
    case 'Reload':
      return [ofService('reload', action.reload?.serviceName ?? '')];
    case 'Restart':
      return [ofService('restart', action.restart?.serviceName ?? '')];
    default:
      return [];
  }
}

/** Step for a service. The services crio and kubelet of OpenShift's hosts are parts of the host process here. */
function ofService(kind: 'reload' | 'restart', serviceName: string): Step {
  const unit = serviceName.includes('.') ? serviceName : `${serviceName}.service`;
  if (unit === 'crio.service') return { kind: 'reload-images' };
  return unit === 'kubelet.service' ? { kind: 'restart-kubelet' } : { kind, unit };
}

const ORDER = [
  'daemon-reload',
  'stop',
  'reload',
  'try-restart',
  'restart',
  'reload-images',
  'restart-kubelet',
  'reboot',
];

/** Removes duplicates and sorts the steps by the order of execution. */
function ordered(steps: readonly Step[]): Step[] {
  const unique = new Map(steps.map((step) => [JSON.stringify(step), step]));
  return [...unique.values()].sort((left, right) => ORDER.indexOf(left.kind) - ORDER.indexOf(right.kind));
}
