/** The sources of `hyperedge status`. They run in parallel, each with its own time limit. */
import { existsSync } from 'node:fs';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { Source } from '../../doctor/port.ts';
import { callAgent } from '../../gossip/agent/index.ts';
import type { AgentMember } from '../../gossip/membership/agent-port.ts';
import { noAnswerOf, noAnswerText } from '../../status/core/index.ts';
import type {
  About,
  GatheredStatus,
  NoAnswer,
  RingNode,
  Snapshots,
  StatusFacts,
  StoreMembers,
} from '../../status/port.ts';
import { parseEvery, readSchedule } from '../../store/config/snapshot-schedule.ts';
import { pathsBelow } from '../config/paths.ts';
import { callControl, type HostStatus } from '../control/control.ts';
import { layoutLine } from '../control/store-layout.ts';
import { certificateFacts } from '../doctor/certificate-facts.ts';
import { createContext, type DoctorContext } from '../doctor/context.ts';
import { absentFact, gatherOne, readOnce } from '../doctor/gather.ts';
import { unitFacts } from '../doctor/host-facts.ts';
import { failureMessage } from '../openshift/revision-archive.ts';
import { lockHolder } from '../run/instance-lock.ts';
import { etcdAccess } from '../store/access.ts';
import { clusterReport, listSnapshots } from '../store/administration.ts';
import { openApiSource } from './api-sources.ts';

/** The time limit exceeds the 3 s for which the host process waits for its own probes. */
const PROCESS_MS = 3500;
const API_MS = 3500;
const LOCAL_MS = 3000;
/** This source is read after the others, which take up to 3.5 s. The limit keeps the whole report below 5 s. */
const UNIT_MS = 1200;
const AGENT_MS = 1500;
const STORE_MS = 3500;
const STORE_LIMITS = { quorumMs: 1500, memberMs: 1200 };
const MAX_PROBLEMS = 10;

export interface Gathered {
  readonly about: About;
  readonly facts: GatheredStatus;
  /** The host process's whole status; undefined if it does not answer. */
  readonly host: HostStatus | undefined;
}

const source = <T>(timeoutMs: number, read: (signal: AbortSignal) => Promise<T>): Source<T> => ({ timeoutMs, read });

/** Reads all sources. A source that fails is reported as failed. Resolves within 5 s. */
export async function gatherStatus(root: string, nowMs: number): Promise<Gathered> {
  const context = createContext({ root, nowMs, machine: '/', helper: [] });
  const paths = pathsBelow(root);
  const installed = existsSync(paths.nodeConfig);
  const whenInstalled = async (): Promise<void> => {
    if (!installed) throw absentFact('nothing is installed here');
  };
  const status = readOnce(() => callControl<HostStatus>(paths.controlSocket, 'GET', '/status', PROCESS_MS));
  const names = readOnce(async () => {
    const { nodeName, nodeIp } = await context.settings();
    return { nodeName, nodeIp };
  });
  const api = openApiSource(root);
  try {
    const [named, host, process, nodes, ring, store, certificates, snapshots, update, pools, operators] =
      await Promise.all([
        gatherOne(source(LOCAL_MS, names)),
        gatherOne(source(PROCESS_MS, status)),
        gatherOne(source(PROCESS_MS, async () => processOf(await status()))),
        gatherOne(source(API_MS, async (signal) => api.nodes((await names()).nodeName, signal))),
        gatherOne(source(AGENT_MS, () => ringNodes(paths.agentSocket))),
        gatherOne(source(STORE_MS, () => storeMembers(root))),
        gatherOne(source(LOCAL_MS, () => whenInstalled().then(() => certificateFacts(context)))),
        gatherOne(source(LOCAL_MS, () => whenInstalled().then(() => snapshotState(root)))),
        gatherOne(
          source(API_MS, (signal) =>
            whenInstalled().then(() =>
              api.update(
                status().catch(() => undefined),
                signal,
              ),
            ),
          ),
        ),
        gatherOne(source(API_MS, api.pools)),
        gatherOne(source(API_MS, api.operators)),
      ]);
    const known = host.state === 'known' ? host.value : undefined;
    const noAnswer = host.state === 'known' || !installed ? undefined : await readNoAnswer(context, paths.pidFile);
    const configured = named.state === 'known' ? named.value : { nodeName: '', nodeIp: '' };
    const { nodeName, nodeIp } = known === undefined ? configured : { nodeName: known.node, nodeIp: known.nodeIp };
    return {
      about: {
        nowMs,
        root,
        nodeName,
        nodeIp,
        installed: installed || known !== undefined,
        version: PRODUCT_VERSION,
        ...(noAnswer === undefined ? {} : { noAnswer }),
      },
      facts: {
        process: explained(process, noAnswer, paths.controlSocket),
        nodes,
        ring,
        store,
        certificates,
        snapshots,
        update,
        pools,
        operators,
      },
      host: known,
    };
  } finally {
    await api.close();
  }
}

async function readNoAnswer(context: DoctorContext, pidFile: string): Promise<NoAnswer> {
  const pid = await lockHolder(pidFile);
  const unit = pid === undefined ? await gatherOne(source(UNIT_MS, () => unitFacts(context))) : undefined;
  return noAnswerOf(pid, unit?.state === 'known' ? unit.value : undefined);
}

function explained(
  process: GatheredStatus['process'],
  noAnswer: NoAnswer | undefined,
  socket: string,
): GatheredStatus['process'] {
  const reason = noAnswer === undefined ? undefined : noAnswerText(noAnswer, socket);
  return reason === undefined ? process : { state: 'failed', reason };
}

function processOf(status: HostStatus): StatusFacts['process'] {
  const { failedRevisions, store, ...rest } = status;
  return {
    ...rest,
    failures: failedRevisions.map(failureMessage),
    ...(store === undefined ? {} : { layout: layoutLine(store) }),
  };
}

/** Members of the gossip ring. Throws CodedError 'absent' if this host is in no ring. */
export async function ringNodes(socket: string): Promise<RingNode[]> {
  if (!existsSync(socket)) throw absentFact('this host is not a member of a gossip ring');
  const members = await callAgent<readonly AgentMember[]>(socket, 'members', {}, AGENT_MS);
  return members.map(({ name, roles, version, state, forMs, store, fsyncMicros }) => ({
    name,
    roles,
    version,
    state,
    forMs,
    memberId: store?.memberId,
    fsyncMs: fsyncMicros === undefined ? undefined : fsyncMicros / 1000,
  }));
}

/** Members of the store. Throws CodedError 'absent' if this host has no access to the store. */
export async function storeMembers(root: string): Promise<StoreMembers> {
  const { masterConfig, etcdConfig } = pathsBelow(root);
  if (![masterConfig, etcdConfig].some(existsSync)) throw absentFact('this host has no access to the store');
  return clusterReport(await etcdAccess({ root }), STORE_LIMITS);
}

async function snapshotState(root: string): Promise<Snapshots> {
  const paths = pathsBelow(root);
  if (!existsSync(paths.etcdConfig)) throw absentFact('this host runs no member of the store');
  const { enabled, every, directory } = await readSchedule(paths.snapshotSchedule, paths.snapshots);
  const found = await listSnapshots(directory, { verify: false });
  return {
    directory,
    newest: found.find(({ problem }) => problem === ''),
    problems: found.flatMap(({ problem }) => (problem === '' ? [] : [problem])).slice(0, MAX_PROBLEMS),
    every: enabled ? every : undefined,
    everyMs: enabled ? parseEvery(every) : undefined,
  };
}
