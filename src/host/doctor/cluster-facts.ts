/** Facts of the cluster from the API server, the store and this host's files. */
import { readFile, stat } from 'node:fs/promises';
import type { ReplicaSet } from '../../api/generated/apps/v1.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import type { ObjectMeta } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { ifMissing, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { type ApiClient, checkReady } from '../../client/index.ts';
import type {
  ApiFacts,
  Facts,
  NodeFacts,
  PodFacts,
  PodOwner,
  SnapshotFacts,
  StoreFacts,
  UpdateFacts,
} from '../../doctor/port.ts';
import type { ClusterVersion } from '../../openshift/operators/kinds/config/types.ts';
import { parseSwitchRecord, type SwitchRecord } from '../../openshift/updates/core/port.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import { platformArchitecture } from '../../runtime/images/index.ts';
import { clusterReport } from '../../store/administration/members.ts';
import type { ComponentStatus } from '../control/control.ts';
import { MANIFEST_LABEL, NAMESPACE } from '../manifests/apply.ts';
import { readDocuments } from '../manifests/documents.ts';
import { createManifestDirectory } from '../manifests/io/manifest-directory.ts';
import { openImageStore } from '../node/images.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { etcdAccess, ownEtcd } from '../store/access.ts';
import { listSnapshots } from '../store/administration.ts';
import type { DoctorContext } from './context.ts';
import { absentFact } from './gather.ts';

const REQUEST_MS = 6000;
const MAX_PODS = 2000;
const MAX_IMAGES = 50;
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const DEFAULT_QUOTA_BYTES = 2 * 1024 * 1024 * 1024;
const PRESSURES = new Set(['DiskPressure', 'MemoryPressure', 'PIDPressure', 'ClockWrong']);

/** Runs `work` with a client of this host. Throws CodedError 'absent' if the host is not installed. */
async function withClient<T>(
  { settings, installed }: DoctorContext,
  work: (client: ApiClient, server: string) => Promise<T>,
): Promise<T> {
  const { root, roles } = await settings();
  if (!(await installed())) throw absentFact('nothing is installed here');
  const file = roles.has('master') ? masterFiles(root).adminKubeconfig : nodeFiles(root).kubeconfig;
  const opened = await openClient(file, 'doctor/hyperedge', { clock, random, log: silentLog });
  try {
    return await work(opened.client, opened.server);
  } finally {
    await opened.close();
  }
}

/** Like `withClient`, but throws CodedError 'absent' if the API server is not ready. The check `api` reports that. */
async function withCluster<T>(context: DoctorContext, work: (client: ApiClient) => Promise<T>): Promise<T> {
  const { problems } = await apiFacts(context);
  if (problems.length > 0) throw absentFact('the API server is not ready; see the check api');
  return withClient(context, work);
}

const answers = new WeakMap<DoctorContext, Promise<ApiFacts>>();

export function apiFacts(context: DoctorContext): Promise<ApiFacts> {
  const known = answers.get(context);
  if (known !== undefined) return known;
  const answer = withClient(context, async (client, server) => {
    const began = performance.now();
    try {
      await checkReady(client, AbortSignal.timeout(REQUEST_MS));
      const latencyMs = performance.now() - began;
      const { gitVersion = '' } = await client.request<{ gitVersion?: string }>('GET', '/version');
      return { server, version: gitVersion, latencyMs, problems: [] };
    } catch (error) {
      return { server, version: '', latencyMs: 0, problems: [messageOf(error)] };
    }
  }).catch((error: unknown): ApiFacts => {
    if (error instanceof Error && 'code' in error && error.code === 'absent') throw error;
    return { server: 'the API server', version: '', latencyMs: 0, problems: [messageOf(error)] };
  });
  answers.set(context, answer);
  return answer;
}

export const nodeFacts = (context: DoctorContext): Promise<NodeFacts[]> =>
  withCluster(context, async (client) => {
    const { roles, nodeName } = await context.settings();
    const list = client.resource(resources.nodes);
    const signal = AbortSignal.timeout(REQUEST_MS);
    const items = roles.has('master') ? (await list.list({ signal })).items : [await list.get(nodeName)];
    return items.map(nodeOf);
  });

function nodeOf({ metadata, status }: Node): NodeFacts {
  const conditions = status?.conditions ?? [];
  const ready = conditions.find(({ type }) => type === 'Ready');
  return {
    name: metadata?.name ?? '',
    machineId: status?.nodeInfo?.machineID ?? '',
    addresses: (status?.addresses ?? []).map(({ address }) => address),
    ready: ready?.status === 'True',
    reason: ready?.message ?? 'the kubelet has not reported yet',
    pressures: conditions
      .filter(({ type, status: state }) => PRESSURES.has(type) && state === 'True')
      .map(({ type, message }) => `${type}: ${message ?? ''}`),
    kubeletVersion: status?.nodeInfo?.kubeletVersion ?? '',
    architecture: status?.nodeInfo?.architecture ?? '',
  };
}

export const podObjects = (context: DoctorContext): Promise<readonly Pod[]> =>
  withCluster(context, async (client) => {
    const { roles, nodeName } = await context.settings();
    const { items } = await client.resource(resources.pods).list({
      limit: MAX_PODS,
      signal: AbortSignal.timeout(REQUEST_MS),
      ...(roles.has('master') ? {} : { fieldSelector: `spec.nodeName=${nodeName}` }),
    });
    return items;
  });

export async function podFacts(context: DoctorContext): Promise<PodFacts[]> {
  const pods = await podObjects(context);
  const isWaiting = pods.some(({ status }) => status?.containerStatuses?.some(({ state }) => state?.waiting));
  const sets = isWaiting ? await replicaSets(context) : [];
  const foreign = isWaiting ? await foreignImages(context, pods) : new Map<string, string>();
  return pods.map(({ metadata, spec, status }) => ({
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    node: spec?.nodeName ?? '',
    owner: ownerOf(metadata, sets),
    waiting: [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap(
      ({ name, image, imageID = '', state, lastState }) => {
        if (state?.waiting === undefined) return [];
        const ended = lastState?.terminated ?? state.terminated;
        const message = [state.waiting.message, ended?.message, ended?.reason].filter(Boolean).join('; ');
        const architecture = foreign.get(imageID);
        const other = architecture === undefined ? {} : { foreign: architecture };
        return [{ container: name, reason: state.waiting.reason ?? '', message, image, ...other }];
      },
    ),
  }));
}

/**
 * Image architectures that differ from this machine's, by image ID, for waiting containers of this host. The runtime
 * does not report this cause: such a container only exits with code 1.
 */
async function foreignImages({ root, settings }: DoctorContext, pods: readonly Pod[]): Promise<Map<string, string>> {
  const { nodeName } = await settings();
  const own = pods
    .filter(({ spec }) => spec?.nodeName === nodeName)
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]);
  const ids = new Set(own.flatMap(({ state, imageID }) => (state?.waiting === undefined ? [] : (imageID ?? []))));
  const store = await openImageStore(root);
  const found = new Map<string, string>();
  for (const id of [...ids].slice(0, MAX_IMAGES)) {
    const image = await store.describe(id).catch(() => undefined);
    const architecture = image?.configuration['Architecture'];
    if (typeof architecture === 'string' && architecture !== platformArchitecture(process.arch))
      found.set(id, architecture);
  }
  return found;
}

const replicaSets = (context: DoctorContext): Promise<readonly ReplicaSet[]> =>
  withCluster(context, async (client) => {
    const request = { limit: MAX_PODS, signal: AbortSignal.timeout(REQUEST_MS) };
    return (await client.resource(resources.replicaSets).list(request)).items;
  }).catch(() => []);

/** The Deployment of a pod's ReplicaSet; otherwise the controller in the pod's owner references. */
function ownerOf(metadata: ObjectMeta | undefined, sets: readonly ReplicaSet[]): PodOwner | undefined {
  const own = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (own === undefined) return undefined;
  const set = own.kind === 'ReplicaSet' ? sets.find((each) => each.metadata?.uid === own.uid) : undefined;
  const deployment = set?.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (deployment === undefined) return { kind: own.kind.toLowerCase(), name: own.name, hasEarlier: false };
  const revisions = sets.filter((each) => each.metadata?.ownerReferences?.some(({ uid }) => uid === deployment.uid));
  return { kind: deployment.kind.toLowerCase(), name: deployment.name, hasEarlier: revisions.length > 1 };
}

export async function storeFacts({ root, settings, installed }: DoctorContext): Promise<StoreFacts> {
  const { roles, storage } = await settings();
  if (!(await installed())) throw absentFact('nothing is installed here');
  if (!roles.has('etcd') && !roles.has('master')) throw absentFact('this host has no access to the store');
  const { members, quorum } = await clusterReport(await etcdAccess({ root }));
  const quota = storage === undefined && roles.has('etcd') ? (await ownEtcd(root)).quotaBytes : 0;
  return {
    quorum,
    quotaBytes: quota === 0 ? DEFAULT_QUOTA_BYTES : quota,
    members: members.map(({ name, id, state, lag, dbBytes, errors }) => ({
      name: name === '' ? id : name,
      state,
      lag,
      errors,
      bytes: dbBytes,
    })),
  };
}

/** Suffix of a marker file. The file `x.yaml.skip` makes the deploy directory ignore `x.yaml`. */
const SKIP = '.skip';

/** Files of the deploy directory that cannot be parsed or whose objects the API server has rejected. */
export async function deployFacts(context: DoctorContext): Promise<Facts['deploy']> {
  const { embedded, nodeName } = await context.settings();
  const directory = embedded.manifests;
  if (directory === undefined) throw absentFact('the deploy directory is disabled');
  const files = createManifestDirectory(directory, () => ({ close: () => {} }));
  const listed = (await files.list()) ?? [];
  const problems: { file: string; problem: string }[] = [];
  const names = new Set(listed.map(({ name }) => name));
  const isPaused = (name: string): boolean => name.endsWith(SKIP) || names.has(`${name}${SKIP}`);
  for (const { name, sizeBytes } of listed) {
    if (isPaused(name)) continue;
    try {
      if (sizeBytes > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes; split it`);
      await readDocuments(await files.read(name), async () => {});
    } catch (error) {
      problems.push({ file: name, problem: messageOf(error) });
    }
  }
  const known = new Set(problems.map(({ file }) => file));
  const rejected = await rejectedManifests(context, nodeName).catch(() => []);
  return {
    directory,
    files: listed.length,
    problems: [...problems, ...rejected.filter(({ file }) => !known.has(file) && !isPaused(file))],
  };
}

const rejectedManifests = (context: DoctorContext, host: string) =>
  withCluster(context, async (client) => {
    const { items } = await client.resource(resources.configMaps).list({
      namespace: NAMESPACE,
      labelSelector: `${MANIFEST_LABEL}=true`,
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    return items.flatMap(({ data = {} }) =>
      data['state'] === 'Failed' && data['host'] === host
        ? [{ file: data['file'] ?? '', problem: (data['message'] ?? '').split('\n')[0] ?? '' }]
        : [],
    );
  });

export async function snapshotFacts({ settings, installed }: DoctorContext): Promise<SnapshotFacts> {
  const { roles, storage, paths } = await settings();
  if (!roles.has('etcd') || storage !== undefined) throw absentFact('this host runs no member of the store');
  if (!(await installed())) throw absentFact('nothing is installed here');
  const found = await listSnapshots(paths.snapshots, { verify: false });
  return {
    directory: paths.snapshots,
    newestMs: found.find(({ problem }) => problem === '')?.takenMs,
    damaged: found.flatMap(({ file, problem }) => (problem === '' ? [] : [{ file, problem }])).slice(0, 10),
  };
}

export async function updateFacts(context: DoctorContext): Promise<UpdateFacts> {
  const { paths, roles } = await context.settings();
  const [record, version, components] = await Promise.all([
    readUpdateRecord(paths.updateRecord),
    withCluster(context, (client) => client.resource(resources.clusterVersions).get('version')).catch(() => undefined),
    context.status().then(
      (status) => status.components,
      () => [],
    ),
  ]);
  return updateOf(record, version, { isMaster: roles.has('master'), components, nowMs: context.nowMs });
}

/** Record of this host's last update. */
export interface UpdateRecord {
  readonly file: string;
  /** Undefined if the host has not been updated. */
  readonly text: string | undefined;
  readonly writtenMs: number;
}

/** Reads the record. Throws if it exists and cannot be read. */
export async function readUpdateRecord(path: string): Promise<UpdateRecord> {
  const text = await readFile(path, 'utf8').catch(ifMissing(undefined));
  const found = await stat(path).catch(ifMissing(undefined));
  return { file: path, text, writtenMs: found?.mtimeMs ?? 0 };
}

interface UpdatedHost {
  readonly isMaster: boolean;
  /** Components of the control plane on this host; empty if the host process does not respond. */
  readonly components: readonly Pick<ComponentStatus, 'name' | 'restarts' | 'startedAt'>[];
  readonly nowMs: number;
}

/** Facts about the last update. `version`: undefined if the API server did not respond. */
export function updateOf(record: UpdateRecord, version: ClusterVersion | undefined, host: UpdatedHost): UpdateFacts {
  const { last, damaged } = readable(record);
  const unfinished =
    last === undefined || last.phase === 'done'
      ? undefined
      : `the update of this host from ${last.from} to ${last.to} is ${last.phase}: ${last.message}`;
  const { conditions, desired, availableUpdates } = version?.status ?? {};
  const cause =
    version === undefined && host.isMaster ? 'no API server responds' : restartsAfter(record.writtenMs, host);
  return {
    current: PRODUCT_VERSION,
    desired: desired?.version ?? '',
    available: (availableUpdates ?? []).map((each) => each.version),
    failing: conditions?.find(({ type, status }) => type === 'Failing' && status === 'True')?.message,
    unfinished,
    ...(damaged === undefined ? {} : { damaged }),
    ...(cause === undefined ? {} : formerOf(last, cause)),
  };
}

function readable({ text, file }: UpdateRecord): { last?: SwitchRecord | undefined; damaged?: string } {
  try {
    return { last: parseSwitchRecord(text, file) };
  } catch (error) {
    return { damaged: messageOf(error) };
  }
}

/** Time after an update during which repeated restarts suggest a defect of the release. */
const SUSPECT_MS = 3 * 24 * 3_600_000;
/** Number of restarts of a component that suggests a defect. A new release starts its pods with the count 0. */
const SUSPECT_RESTARTS = 3;

/** Restarts of components since an update at `updatedMs`; undefined if there are few, or the update is long ago. */
function restartsAfter(updatedMs: number, { components, nowMs }: UpdatedHost): string | undefined {
  if (nowMs < updatedMs || nowMs - updatedMs > SUSPECT_MS) return undefined;
  const restarted = components.filter(
    ({ restarts, startedAt }) => restarts >= SUSPECT_RESTARTS && !(Date.parse(startedAt) <= updatedMs),
  );
  if (restarted.length === 0) return undefined;
  return restarted.map(({ name, restarts }) => `${name} has restarted ${restarts} times since the update`).join(', ');
}

function formerOf(last: SwitchRecord | undefined, cause: string): Pick<UpdateFacts, 'former'> {
  const isUpdated = last?.phase === 'done' && last.from !== last.to && last.to === PRODUCT_VERSION;
  return isUpdated ? { former: { version: last.from, cause } } : {};
}
