/** Messages of the container runtime interface that the kubelet uses. Source: k8s.io/cri-api runtime/v1 api.proto. */
import { many, one } from './codec.ts';

const int64Value = { value: one(1, 'int') };
const idMapping = { hostId: one(1, 'int'), containerId: one(2, 'int'), length: one(3, 'int') };
const userNamespace = { mode: one(1, 'int'), uids: many(2, idMapping), gids: many(3, idMapping) };
const namespaceOption = {
  network: one(1, 'int'),
  pid: one(2, 'int'),
  ipc: one(3, 'int'),
  targetId: one(4, 'string'),
  userns: one(5, userNamespace),
};
const securityProfile = { type: one(1, 'int'), localhostRef: one(2, 'string') };

const metadata = { name: one(1, 'string'), uid: one(2, 'string'), namespace: one(3, 'string'), attempt: one(4, 'int') };
const hugePageLimit = { pageSize: one(1, 'string'), limit: one(2, 'int') };

export const linuxResources = {
  cpuPeriod: one(1, 'int'),
  cpuQuota: one(2, 'int'),
  cpuShares: one(3, 'int'),
  memoryLimit: one(4, 'int'),
  oomScoreAdj: one(5, 'int'),
  cpusetCpus: one(6, 'string'),
  cpusetMems: one(7, 'string'),
  hugePageLimits: many(8, hugePageLimit),
  unified: one(9, 'texts'),
};

export const sandboxConfig = {
  metadata: one(1, metadata),
  hostname: one(2, 'string'),
  logDirectory: one(3, 'string'),
  dns: one(4, { servers: many(1, 'string'), searches: many(2, 'string'), options: many(3, 'string') }),
  ports: many(5, {
    protocol: one(1, 'int'),
    containerPort: one(2, 'int'),
    hostPort: one(3, 'int'),
    hostIp: one(4, 'string'),
  }),
  labels: one(6, 'texts'),
  annotations: one(7, 'texts'),
  linux: one(8, {
    cgroupParent: one(1, 'string'),
    security: one(2, {
      namespaces: one(1, namespaceOption),
      privileged: one(6, 'bool'),
      seccomp: one(9, securityProfile),
    }),
    sysctls: one(3, 'texts'),
  }),
};

export const runPodSandbox = { config: one(1, sandboxConfig), handler: one(2, 'string') };
/** Request whose only field is an id, of a sandbox or of a container. */
export const idOnly = { id: one(1, 'string') };

export const sandboxStatus = {
  id: one(1, 'string'),
  metadata: one(2, metadata),
  state: one(3, 'int'),
  createdAt: one(4, 'nanos'),
  network: one(5, { ip: one(1, 'string'), more: many(2, { ip: one(1, 'string') }) }),
  labels: one(7, 'texts'),
  annotations: one(8, 'texts'),
};
export const sandboxStatusResponse = { status: one(1, sandboxStatus), info: one(2, 'texts') };
export const listResponse = { items: many(1, idOnly) };

const containerMetadata = { name: one(1, 'string'), attempt: one(2, 'int') };
const imageSpec = { image: one(1, 'string') };
const mount = {
  containerPath: one(1, 'string'),
  hostPath: one(2, 'string'),
  readOnly: one(3, 'bool'),
  propagation: one(5, 'int'),
  uidMappings: many(6, idMapping),
  gidMappings: many(7, idMapping),
  recursiveReadOnly: one(8, 'bool'),
};

const containerConfig = {
  metadata: one(1, containerMetadata),
  image: one(2, imageSpec),
  command: many(3, 'string'),
  args: many(4, 'string'),
  workingDir: one(5, 'string'),
  env: many(6, { key: one(1, 'string'), value: one(2, 'string') }),
  mounts: many(7, mount),
  devices: many(8, { containerPath: one(1, 'string'), hostPath: one(2, 'string'), permissions: one(3, 'string') }),
  labels: one(9, 'texts'),
  annotations: one(10, 'texts'),
  logPath: one(11, 'string'),
  stdin: one(12, 'bool'),
  stdinOnce: one(13, 'bool'),
  tty: one(14, 'bool'),
  linux: one(15, {
    resources: one(1, linuxResources),
    security: one(2, {
      capabilities: one(1, { add: many(1, 'string'), drop: many(2, 'string') }),
      privileged: one(2, 'bool'),
      namespaces: one(3, namespaceOption),
      runAsUser: one(5, int64Value),
      readOnlyRoot: one(7, 'bool'),
      supplementalGroups: many(8, 'int'),
      noNewPrivileges: one(11, 'bool'),
      runAsGroup: one(12, int64Value),
      maskedPaths: many(13, 'string'),
      readOnlyPaths: many(14, 'string'),
      seccomp: one(15, securityProfile),
      appArmor: one(16, securityProfile),
      supplementalGroupsPolicy: one(17, 'int'),
    }),
  }),
};

export const createContainer = {
  sandboxId: one(1, 'string'),
  config: one(2, containerConfig),
  sandbox: one(3, sandboxConfig),
};

export const container = { id: one(1, 'string'), sandboxId: one(2, 'string') };
export const listContainersResponse = { containers: many(1, container) };
const linuxUser = { uid: one(1, 'int'), gid: one(2, 'int'), supplementalGroups: many(3, 'int') };

export const containerStatusRequest = { id: one(1, 'string'), verbose: one(2, 'bool') };
export const containerStatus = {
  id: one(1, 'string'),
  metadata: one(2, containerMetadata),
  state: one(3, 'int'),
  createdAt: one(4, 'nanos'),
  startedAt: one(5, 'nanos'),
  finishedAt: one(6, 'nanos'),
  exitCode: one(7, 'int'),
  image: one(8, imageSpec),
  imageRef: one(9, 'string'),
  reason: one(10, 'string'),
  message: one(11, 'string'),
  labels: one(12, 'texts'),
  annotations: one(13, 'texts'),
  logPath: one(15, 'string'),
  imageId: one(17, 'string'),
  user: one(18, { linux: one(1, linuxUser) }),
};
export const containerStatusResponse = { status: one(1, containerStatus), info: one(2, 'texts') };
export const stopContainer = { id: one(1, 'string'), timeout: one(2, 'int') };
export const updateResources = { id: one(1, 'string'), linux: one(2, linuxResources) };

export const execSync = { id: one(1, 'string'), command: many(2, 'string'), timeout: one(3, 'int') };
export const execSyncResponse = { stdout: one(1, 'bytes'), stderr: one(2, 'bytes'), exitCode: one(3, 'int') };
export const exec = {
  id: one(1, 'string'),
  command: many(2, 'string'),
  tty: one(3, 'bool'),
  stdin: one(4, 'bool'),
  stdout: one(5, 'bool'),
  stderr: one(6, 'bool'),
};
export const attach = {
  id: one(1, 'string'),
  stdin: one(2, 'bool'),
  tty: one(3, 'bool'),
  stdout: one(4, 'bool'),
  stderr: one(5, 'bool'),
};
export const urlResponse = { url: one(1, 'string') };
export const checkpointContainer = { id: one(1, 'string'), location: one(2, 'string'), timeout: one(3, 'int') };

const counter = { value: one(1, 'int') };
export const statsResponse = {
  stats: one(1, {
    cpu: one(2, { timestamp: one(1, 'nanos'), used: one(2, counter) }),
    memory: one(3, {
      timestamp: one(1, 'nanos'),
      workingSet: one(2, counter),
      usage: one(4, counter),
      rss: one(5, counter),
    }),
    writable: one(4, { timestamp: one(1, 'nanos'), bytes: one(3, counter), inodes: one(4, counter) }),
  }),
};

const image = {
  id: one(1, 'string'),
  tags: many(2, 'string'),
  digests: many(3, 'string'),
  size: one(4, 'int'),
  uid: one(5, int64Value),
  username: one(6, 'string'),
};
export const listImagesResponse = { images: many(1, image) };
export const imageRequest = { image: one(1, imageSpec) };
export const imageStatusResponse = { image: one(1, image) };
export const pullImage = {
  image: one(1, imageSpec),
  auth: one(2, { username: one(1, 'string'), password: one(2, 'string') }),
};

export const versionResponse = { name: one(2, 'string'), version: one(3, 'string'), api: one(4, 'string') };
export const statusResponse = {
  conditions: one(1, {
    conditions: many(1, {
      type: one(1, 'string'),
      status: one(2, 'bool'),
      reason: one(3, 'string'),
      message: one(4, 'string'),
    }),
  }),
  handlers: many(3, {
    name: one(1, 'string'),
    features: one(2, { recursiveReadOnly: one(1, 'bool'), userNamespaces: one(2, 'bool') }),
  }),
  features: one(4, { supplementalGroupsPolicy: one(1, 'bool') }),
};
