/** Translates pod and container configurations into messages of the container runtime interface. */
import { withFields } from '../../api/podspec/fields/field.ts';
import { CONTAINER_FIELDS, CRI_PROFILES, SECURITY_FIELDS } from '../../api/podspec/fields/table.ts';
import { decodeJson, flag, number, object, own, text as string } from '../../base/decode.ts';
import { unknownCapability } from '../../base/linux/capability-names.ts';
import { type ContainerConfig, type LinuxResources, RuntimeError, type SandboxConfig } from '../port.ts';
import type { Draft } from './codec.ts';
import type { createContainer, linuxResources, sandboxConfig } from './messages.ts';

/** Source: runtime/v1 NamespaceMode. */
const NAMESPACE = { pod: 0, container: 1, node: 2, target: 3 } as const;
const PROTOCOL = { TCP: 0, UDP: 1, SCTP: 2 } as const;
const PROPAGATION = { private: 0, hostToContainer: 1, bidirectional: 2 } as const;

/** Annotations that the kubelet adds to sandboxes and containers for its own use and hides from its callers. */
export const NOTES = {
  sandbox: 'hyperedge.dev/sandbox-config',
  stopSignal: 'hyperedge.dev/stop-signal',
  image: 'hyperedge.dev/image',
} as const;

/** Annotations without the kubelet's own. */
export function ownAnnotations(annotations: Readonly<Record<string, string>>): Record<string, string> {
  const notes: readonly string[] = Object.values(NOTES);
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !notes.includes(name)));
}

type Namespaces = Pick<
  SandboxConfig,
  'hostNetwork' | 'hostPid' | 'hostIpc' | 'shareProcessNamespace' | 'userNamespace'
>;

function namespaceOption(config: Namespaces, target?: string) {
  const { hostId = 0, length = 0 } = config.userNamespace ?? {};
  const mapping = [{ hostId, containerId: 0, length }];
  const ownPid = config.shareProcessNamespace ? NAMESPACE.pod : NAMESPACE.container;
  const podPid = target === undefined ? ownPid : NAMESPACE.target;
  const pid = config.hostPid ? NAMESPACE.node : podPid;
  return {
    network: config.hostNetwork ? NAMESPACE.node : NAMESPACE.pod,
    ipc: config.hostIpc ? NAMESPACE.node : NAMESPACE.pod,
    pid,
    ...(target === undefined ? {} : { targetId: target }),
    ...(config.userNamespace === undefined ? {} : { userns: { mode: NAMESPACE.pod, uids: mapping, gids: mapping } }),
  };
}

export function sandboxDraft(config: SandboxConfig): Draft<typeof sandboxConfig> {
  const { name, uid, namespace, attempt } = config;
  // Save the configuration in an annotation, because containers need it later, possibly in another kubelet process.
  const { labels: _labels, annotations: _annotations, ...kept } = config;
  return {
    metadata: { name, uid, namespace, attempt },
    hostname: config.hostNetwork ? '' : config.hostname,
    logDirectory: config.logDirectory,
    ...(config.dns === undefined ? {} : { dns: config.dns }),
    ports: config.portMappings.map((each) => ({ ...each, protocol: PROTOCOL[each.protocol] })),
    labels: config.labels,
    annotations: { ...config.annotations, [NOTES.sandbox]: JSON.stringify(kept) },
    linux: {
      cgroupParent: config.cgroupParent,
      security: {
        namespaces: namespaceOption(config),
        seccomp: { type: CRI_PROFILES['runtime/default'] },
        privileged: config.privileged,
      },
      sysctls: config.sysctls,
    },
  };
}

const KEPT = own<Omit<SandboxConfig, 'labels' | 'annotations'>>(
  object({ name: string, namespace: string, uid: string, attempt: number, hostNetwork: flag }),
);

/**
 * Reads the configuration that a sandbox was created with. Throws RuntimeError 'create-failed' if another client
 * created the sandbox.
 */
export function configOf(annotations: Readonly<Record<string, string>>): SandboxConfig {
  const text = annotations[NOTES.sandbox];
  if (text === undefined) throw new RuntimeError('create-failed', 'the pod sandbox was not made by this kubelet');
  const kept = decodeJson(KEPT, text, NOTES.sandbox);
  return { ...kept, labels: {}, annotations: {} };
}

export function resourcesDraft(resources: LinuxResources): Draft<typeof linuxResources> {
  return {
    cpuPeriod: resources.cpuPeriod,
    cpuQuota: resources.cpuQuota,
    cpuShares: resources.cpuShares,
    memoryLimit: resources.memoryLimitBytes,
    oomScoreAdj: resources.oomScoreAdj,
    cpusetCpus: resources.cpusetCpus,
    cpusetMems: resources.cpusetMems,
    hugePageLimits: resources.hugePageLimits?.map(({ pageSizeBytes, limitBytes }) => ({
      pageSize: hugePageSize(pageSizeBytes),
      limit: limitBytes,
    })),
    unified: resources.unified,
  };
}

function hugePageSize(bytes: number): string {
  const megabytes = bytes / 1024 ** 2;
  return megabytes >= 1024 ? `${megabytes / 1024}GB` : megabytes >= 1 ? `${megabytes}MB` : `${megabytes * 1024}KB`;
}

/** `strictGroups`: the runtime supports the policy for supplemental groups. */
export function containerDraft(
  sandboxId: string,
  sandbox: SandboxConfig,
  config: ContainerConfig,
  { strictGroups }: { readonly strictGroups: boolean },
): Draft<typeof createContainer> {
  if (config.hostRoot === true)
    throw new RuntimeError(
      'create-failed',
      `container ${config.name}: the host's root is not an image of this runtime`,
    );
  if (config.security.strictSupplementalGroups === true && !strictGroups)
    throw new RuntimeError(
      'create-failed',
      'supplementalGroupsPolicy: Strict is not supported by the container runtime',
    );
  const { addCapabilities, dropCapabilities } = config.security;
  const unknown = unknownCapability([...addCapabilities, ...dropCapabilities]);
  if (unknown !== undefined) throw new RuntimeError('create-failed', `unknown capability ${JSON.stringify(unknown)}`);
  const mapping = sandbox.userNamespace;
  const mappings = mapping === undefined ? undefined : [{ ...mapping, containerId: 0 }];
  const message = {
    metadata: { name: config.name, attempt: config.attempt },
    image: { image: config.imageId },
    command: config.command,
    args: config.args,
    env: config.env.map(({ name, value }) => ({ key: name, value })),
    mounts: config.mounts.map((mount) => ({
      containerPath: mount.containerPath,
      hostPath: mount.hostPath,
      readOnly: mount.readOnly,
      propagation: PROPAGATION[mount.propagation],
      recursiveReadOnly: mount.recursiveReadOnly === true,
      uidMappings: mappings,
      gidMappings: mappings,
    })),
    devices: config.devices,
    labels: config.labels,
    annotations: {
      ...config.annotations,
      [NOTES.image]: config.image,
      ...(config.stopSignal === undefined ? {} : { [NOTES.stopSignal]: config.stopSignal }),
    },
    logPath: config.logPath,
    linux: { resources: resourcesDraft(config.resources), security: securityDraft(sandbox, config) },
  };
  const withContainer = withFields(message, CONTAINER_FIELDS, config, 'cri');
  return {
    sandboxId,
    sandbox: sandboxDraft(sandbox),
    config: withFields(withContainer, SECURITY_FIELDS, config.security, 'cri'),
  };
}

/** Parts of the security context that are not in the table of fields. */
const securityDraft = (sandbox: SandboxConfig, { security, pidNamespaceOf }: ContainerConfig) => ({
  namespaces: namespaceOption(sandbox, pidNamespaceOf),
  seccomp: profile(security.privileged ? 'unconfined' : security.seccomp, security.seccompProfile),
});

const profile = (type: keyof typeof CRI_PROFILES, localhostRef = '') => ({ type: CRI_PROFILES[type], localhostRef });
