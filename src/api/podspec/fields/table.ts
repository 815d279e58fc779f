/**
 * Tables of the container fields that the kubelet passes to the runtime. The configuration of the runtime port has one
 * property per entry; the runtime specification and the CRI message are built from the entries. Source:
 * kuberuntime_container.go, security_context.go.
 */
import { MASKED_PATHS, READONLY_PATHS } from '../../../base/linux/masked-paths.ts';
import type { AppArmorProfile } from '../../generated/core/v1.ts';
import { type FieldOwner, field, type Part, type ValuesOf } from './field.ts';

/** Fields of a container, by property of the container configuration. */
export const CONTAINER_FIELDS = {
  workingDir: field({
    path: 'containers[].workingDir',
    since: '1.0',
    read: ({ container }) => container.workingDir || undefined,
    oci: (cwd) => (cwd === undefined || cwd === '' ? {} : { process: { cwd } }),
    cri: (workingDir) => ({ workingDir }),
  }),
  stdin: field({
    path: 'containers[].stdin',
    since: '1.0',
    read: ({ container }) => container.stdin === true,
    cri: (stdin) => ({ stdin }),
  }),
  stdinOnce: field({
    path: 'containers[].stdinOnce',
    since: '1.1',
    read: ({ container }) => container.stdinOnce === true,
    cri: (stdinOnce) => ({ stdinOnce }),
  }),
  tty: field({
    path: 'containers[].tty',
    since: '1.0',
    read: ({ container }) => container.tty === true,
    oci: (terminal) => ({ process: { terminal } }),
    cri: (tty) => ({ tty }),
  }),
  /**
   * Stop signal, for example `SIGUSR1` or `SIGRTMIN+3`; undefined if the image's stop signal applies. CRI has no field
   * for the signal, so an annotation contains it.
   */
  stopSignal: field({
    path: 'containers[].lifecycle.stopSignal',
    since: '1.33',
    read: ({ container }): string | undefined => container.lifecycle?.stopSignal,
  }),
};

const own = ({ container }: FieldOwner) => container.securityContext ?? {};
const shared = ({ pod }: FieldOwner) => pod.spec?.securityContext ?? {};
const security = (part: Part): Part => ({ linux: { security: part } });
const isPrivileged = (all: Part): boolean => all['privileged'] === true;

/** Source: runtime/v1 SecurityProfile.ProfileType. */
export const CRI_PROFILES = { 'runtime/default': 0, unconfined: 1, localhost: 2 } as const;
const STRICT_GROUPS = 1;

type AppArmor =
  | { readonly type: 'runtime/default' | 'unconfined' }
  | { readonly type: 'localhost'; readonly profile: string };

/** Fields of the security contexts, by property of the container's security configuration. */
export const SECURITY_FIELDS = {
  privileged: field({
    path: 'containers[].securityContext.privileged',
    since: '1.0',
    read: (owner) => own(owner).privileged === true,
    cri: (privileged) => security({ privileged }),
  }),
  runAsUser: field({
    path: 'containers[].securityContext.runAsUser',
    since: '1.0',
    read: (owner): number | undefined => own(owner).runAsUser ?? shared(owner).runAsUser,
    cri: (value) => security({ runAsUser: { value } }),
  }),
  runAsGroup: field({
    path: 'containers[].securityContext.runAsGroup',
    since: '1.10',
    read: (owner): number | undefined => own(owner).runAsGroup ?? shared(owner).runAsGroup,
    cri: (value) => security({ runAsGroup: { value } }),
  }),
  supplementalGroups: field({
    path: 'securityContext.supplementalGroups',
    since: '1.1',
    read: (owner): readonly number[] => {
      const { fsGroup, supplementalGroups = [] } = shared(owner);
      return [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups];
    },
    cri: (supplementalGroups) => security({ supplementalGroups }),
  }),
  /** True if the process must not get the groups to which the image's /etc/group adds its user. */
  strictSupplementalGroups: field({
    path: 'securityContext.supplementalGroupsPolicy',
    since: '1.31',
    read: (owner): boolean | undefined => shared(owner).supplementalGroupsPolicy === 'Strict',
    cri: (isStrict) => security({ supplementalGroupsPolicy: isStrict === true ? STRICT_GROUPS : 0 }),
  }),
  readOnlyRootFilesystem: field({
    path: 'containers[].securityContext.readOnlyRootFilesystem',
    since: '1.1',
    read: (owner) => own(owner).readOnlyRootFilesystem === true,
    cri: (readOnlyRoot) => security({ readOnlyRoot }),
  }),
  allowPrivilegeEscalation: field({
    path: 'containers[].securityContext.allowPrivilegeEscalation',
    since: '1.8',
    read: (owner) => own(owner).allowPrivilegeEscalation !== false,
    oci: (isAllowed, all) => ({ process: { noNewPrivileges: !isAllowed && !isPrivileged(all) } }),
    cri: (isAllowed, all) => security({ noNewPrivileges: !isAllowed && !isPrivileged(all) }),
  }),
  addCapabilities: field({
    path: 'containers[].securityContext.capabilities.add',
    since: '1.0',
    read: (owner): readonly string[] => own(owner).capabilities?.add ?? [],
    cri: (add) => security({ capabilities: { add } }),
  }),
  dropCapabilities: field({
    path: 'containers[].securityContext.capabilities.drop',
    since: '1.0',
    read: (owner): readonly string[] => own(owner).capabilities?.drop ?? [],
    cri: (drop) => security({ capabilities: { drop } }),
  }),
  /** AppArmor profile; undefined if there is none. The type `localhost` names a profile that is loaded on the host. */
  appArmor: field({
    path: 'containers[].securityContext.appArmorProfile',
    since: '1.30',
    read: (owner) => appArmorOf(own(owner).appArmorProfile ?? shared(owner).appArmorProfile),
    cri: (profile) =>
      profile === undefined
        ? {}
        : security({
            appArmor: {
              type: CRI_PROFILES[profile.type],
              localhostRef: profile.type === 'localhost' ? profile.profile : '',
            },
          }),
  }),
  procMount: field({
    path: 'containers[].securityContext.procMount',
    since: '1.12',
    read: (owner): 'default' | 'unmasked' => (own(owner).procMount === 'Unmasked' ? 'unmasked' : 'default'),
    oci: (mount, all) =>
      mount === 'unmasked' || isPrivileged(all)
        ? {}
        : { linux: { maskedPaths: MASKED_PATHS, readonlyPaths: READONLY_PATHS } },
    cri: (mount, all) => {
      const isPlain = mount === 'unmasked' || isPrivileged(all);
      return security({
        maskedPaths: isPlain ? [] : MASKED_PATHS,
        readOnlyPaths: isPlain ? [] : READONLY_PATHS,
      });
    },
  }),
};

export type ContainerFieldValues = ValuesOf<typeof CONTAINER_FIELDS>;
export type SecurityFieldValues = ValuesOf<typeof SECURITY_FIELDS>;

function appArmorOf(profile: AppArmorProfile | undefined): AppArmor | undefined {
  if (profile === undefined) return undefined;
  if (profile.type === 'Localhost') return { type: 'localhost', profile: profile.localhostProfile ?? '' };
  return { type: profile.type === 'RuntimeDefault' ? 'runtime/default' : 'unconfined' };
}
