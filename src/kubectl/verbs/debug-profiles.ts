/** Rights of debug containers by profile. Source: k8s.io/kubectl/pkg/cmd/debug/profiles.go. */
import { ClientError } from '../core/errors.ts';

export type Fields = Record<string, unknown>;

export type DebugPlace = 'node' | 'copy' | 'ephemeral';

const PROFILES = ['general', 'baseline', 'restricted', 'netadmin', 'sysadmin', 'legacy'];

const HOST_NAMESPACES = { hostNetwork: true, hostPID: true, hostIPC: true };
const ROOT_VOLUME = { name: 'host-root', hostPath: { path: '/' } };
const ROOT_MOUNT = { name: 'host-root', mountPath: '/host' };

/** Pod spec and container with the settings of the profile. Throws ClientError for an unknown one. */
export function profiled(
  profile: string,
  place: DebugPlace,
  spec: Fields,
  container: Fields,
): { readonly spec: Fields; readonly container: Fields } {
  if (!PROFILES.includes(profile))
    throw new ClientError(`unknown profile: ${profile}; use ${PROFILES.slice(0, -1).join(', ')}`);
  const capabilities = (...names: string[]): Fields => ({
    ...container,
    securityContext: { capabilities: { add: names } },
  });
  const onHost = (withRoot: boolean): { readonly spec: Fields; readonly mounts: Fields } => ({
    spec: { ...spec, ...HOST_NAMESPACES, ...(withRoot ? { volumes: [ROOT_VOLUME] } : {}) },
    mounts: withRoot ? { volumeMounts: [ROOT_MOUNT] } : {},
  });
  const isNode = place === 'node';
  switch (profile) {
    case 'general': {
      if (!isNode) return { spec, container: capabilities('SYS_PTRACE') };
      const host = onHost(true);
      return { spec: host.spec, container: { ...container, ...host.mounts } };
    }
    case 'restricted':
      return {
        spec,
        container: {
          ...container,
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            runAsNonRoot: true,
            seccompProfile: { type: 'RuntimeDefault' },
          },
        },
      };
    case 'netadmin':
      return {
        spec: isNode ? onHost(false).spec : spec,
        container: capabilities('NET_ADMIN', 'NET_RAW'),
      };
    case 'sysadmin': {
      const host = isNode ? onHost(true) : { spec, mounts: {} };
      return { spec: host.spec, container: { ...container, ...host.mounts, securityContext: { privileged: true } } };
    }
    case 'legacy': {
      const host = isNode ? onHost(true) : { spec, mounts: {} };
      return { spec: host.spec, container: { ...container, ...host.mounts } };
    }
    default:
      return { spec, container };
  }
}
