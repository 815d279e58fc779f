/** Rights of debug containers by profile. Source: k8s.io/kubectl/pkg/cmd/debug/profiles.go. */
import { ClientError } from '../../core/errors.ts';

export type Fields = Record<string, unknown>;

export type DebugPlace = 'node' | 'copy' | 'ephemeral';

export type Profile = 'general' | 'baseline' | 'restricted' | 'netadmin' | 'sysadmin' | 'legacy';

/** Parts of a pod that a copy keeps. */
export interface KeptParts {
  readonly labels: boolean;
  readonly annotations: boolean;
  readonly liveness: boolean;
  readonly readiness: boolean;
  readonly startup: boolean;
  readonly initContainers: boolean;
}

export interface DebugPod {
  metadata: Fields;
  spec: Fields;
}

const PROFILES: readonly string[] = ['general', 'baseline', 'restricted', 'netadmin', 'sysadmin', 'legacy'];

const HOST_NAMESPACES = { hostNetwork: true, hostPID: true, hostIPC: true };
const ROOT_VOLUME = { name: 'host-root', hostPath: { path: '/' } };
const ROOT_MOUNT = { mountPath: '/host', name: 'host-root' };

/** Parses the name of a profile. Throws ClientError if it is unknown. */
export function profileOf(name: string): Profile {
  if (!PROFILES.includes(name)) throw new ClientError(`unknown profile: ${name}`);
  return name as Profile;
}

/** The debug container with the rights of the profile. */
export function profiledContainer(profile: Profile, place: DebugPlace, container: Fields): Fields {
  const { securityContext: before, ...bare } = container;
  const context = (before ?? {}) as Fields;
  const capabilities = (context['capabilities'] ?? {}) as Fields;
  const withCapabilities = (...names: string[]): Fields => {
    const add = [...((capabilities['add'] ?? []) as string[]), ...names];
    return { ...bare, securityContext: { ...context, capabilities: { ...capabilities, add } } };
  };
  const mounted = (each: Fields): Fields =>
    place === 'node' ? { ...each, volumeMounts: [...((each['volumeMounts'] ?? []) as Fields[]), ROOT_MOUNT] } : each;
  switch (profile) {
    case 'general':
      return place === 'node' ? mounted(bare) : withCapabilities('SYS_PTRACE');
    case 'baseline':
      return bare;
    case 'restricted':
      return {
        ...bare,
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          runAsNonRoot: true,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      };
    case 'netadmin':
      return withCapabilities('NET_ADMIN', 'NET_RAW');
    case 'sysadmin':
      return mounted({ ...bare, securityContext: { ...context, privileged: true } });
    case 'legacy':
      return mounted(container);
  }
}

/** Debug pod on a node, with the rights of the profile for its container `name`. */
export function nodePod(profile: Profile, { metadata, spec }: DebugPod, name: string): DebugPod {
  const hasHost = profile !== 'baseline' && profile !== 'restricted';
  const hasRoot = hasHost && profile !== 'netadmin';
  return {
    metadata,
    spec: {
      ...withProfile(profile, 'node', spec, name),
      ...(hasHost ? HOST_NAMESPACES : {}),
      ...(hasRoot ? { volumes: [...((spec['volumes'] ?? []) as Fields[]), ROOT_VOLUME] } : {}),
    },
  };
}

/**
 * Copy of a pod, with the rights of the profile for its container `name`. `keep` determines which other parts are
 * copied.
 */
export function copiedPod(profile: Profile, { metadata, spec }: DebugPod, name: string, keep: KeptParts): DebugPod {
  const { labels, annotations, ...named } = metadata;
  const rights = withProfile(profile, 'copy', spec, name);
  if (profile === 'legacy') return { metadata: { ...named, annotations }, spec: rights };
  const probes = [
    ...(keep.liveness ? [] : ['livenessProbe']),
    ...(keep.readiness ? [] : ['readinessProbe']),
    ...(keep.startup ? [] : ['startupProbe']),
  ];
  const { initContainers, ...plain } = rights;
  return {
    metadata: { ...named, ...(keep.labels ? { labels } : {}), ...(keep.annotations ? { annotations } : {}) },
    spec: {
      ...plain,
      ...(keep.initContainers && initContainers !== undefined ? { initContainers } : {}),
      shareProcessNamespace: plain['shareProcessNamespace'] ?? true,
      containers: (plain['containers'] as Fields[]).map((each) =>
        Object.fromEntries(Object.entries(each).filter(([field]) => !probes.includes(field))),
      ),
    },
  };
}

function withProfile(profile: Profile, place: DebugPlace, spec: Fields, name: string): Fields {
  const changed = (list: unknown): Fields[] =>
    (list as Fields[]).map((each) => (each['name'] === name ? profiledContainer(profile, place, each) : each));
  return {
    ...spec,
    containers: changed(spec['containers']),
    ...(spec['initContainers'] === undefined ? {} : { initContainers: changed(spec['initContainers']) }),
  };
}
