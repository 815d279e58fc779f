/** Rigs from the command line: list, claim, release, console and power. */
import { pipeline } from 'node:stream/promises';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { printable } from '../../base/text/printable.ts';
import { type ApiClient, openRemoteTerminal } from '../../client/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { PowerAction, Rig, RigClaim, RigUse } from '../../rigs/kinds/rig-types.ts';
import type { RecordingFile } from '../../rigs/rig-host-port.ts';
import { canonicalRoot } from '../config/paths.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

export interface RigAccess {
  /** Path of a kubeconfig. Default: `KUBECONFIG`, then the administrator's kubeconfig of this host. */
  readonly kubeconfig: string | undefined;
  readonly root: string | undefined;
}

/** A claim in a namespace or, with `isRig`, a rig itself. */
export interface RigTarget {
  readonly name: string;
  readonly namespace: string;
  readonly isRig: boolean;
}

export interface ClaimRequest {
  readonly name: string | undefined;
  readonly namespace: string;
  readonly rig: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly duration: string | undefined;
}

const WAIT_MS = 1_000;

async function withClient<T>({ kubeconfig, root }: RigAccess, use: (opened: OpenedClient) => Promise<T>): Promise<T> {
  const file = kubeconfig ?? (process.env['KUBECONFIG'] || masterFiles(await canonicalRoot(root)).adminKubeconfig);
  const opened = await openClient(file, 'hyperedge/rig', { clock, random, log: silentLog });
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

export const listRigs = (access: RigAccess): Promise<readonly Rig[]> =>
  withClient(access, async ({ client }) => (await client.resource(resources.rigs).list()).items);

/** Uses of a rig, newest first. */
export const rigHistory = (access: RigAccess, name: string): Promise<readonly RigUse[]> =>
  withClient(access, async ({ client }) => {
    await requireTarget(client, { name, namespace: '', isRig: true });
    return (await client.resource(resources.rigs).get(name)).status?.history ?? [];
  });

const recordingsPath = (name: string): string => `${pathOf({ name, namespace: '', isRig: true })}/recordings`;

export interface ListedRecording extends RecordingFile {
  /** Name of the node that has the file; undefined if the API server is of an earlier release. */
  readonly node?: string;
}

export interface RecordingList {
  /** Recordings of all nodes that the rig has had, newest first. */
  readonly items: readonly ListedRecording[];
  /** Nodes whose recordings are missing. */
  readonly failures: readonly { readonly node: string; readonly message: string }[];
}

async function recordingsOf(client: ApiClient, name: string): Promise<RecordingList> {
  await requireTarget(client, { name, namespace: '', isRig: true });
  const { items, failures = [] } = await client.request<Partial<RecordingList>>('GET', recordingsPath(name));
  return { items: items ?? [], failures };
}

export const listRecordings = (access: RigAccess, name: string): Promise<RecordingList> =>
  withClient(access, ({ client }) => recordingsOf(client, name));

/**
 * Writes a recording to the standard output; control characters are escaped on a terminal. Without `node`, the
 * recording is read from the node whose list contains `file`.
 */
export const printRecording = (
  access: RigAccess,
  { name, file, node }: { readonly name: string; readonly file: string; readonly node: string | undefined },
): Promise<void> =>
  withClient(access, async ({ client }) => {
    const from = node ?? (await nodeOfRecording(client, name, file));
    const query = new URLSearchParams({ file, ...(from === undefined ? {} : { node: from }) });
    const { body } = await client.stream('GET', `${recordingsPath(name)}?${query}`, undefined, { accept: '*/*' });
    const { stdout } = process;
    await pipeline(stdout.isTTY ? printableParts(body) : body, stdout, { end: false });
  });

async function nodeOfRecording(client: ApiClient, name: string, file: string): Promise<string | undefined> {
  const { items, failures } = await recordingsOf(client, name);
  const found = items.find((each) => each.name === file);
  if (found === undefined && failures.length > 0) {
    const missing = failures.map(({ node, message }) => `${node} (${message})`).join(', ');
    throw new CodedError(
      'not-found',
      `rig "${name}": recording "${file}" not found; nodes that returned no list: ${missing}`,
    );
  }
  return found?.node;
}

/** The text with control characters as escapes. A carriage return before a line feed is removed. */
async function* printableParts(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const text = rest + decoder.decode(chunk, { stream: true });
    rest = text.endsWith('\r') ? '\r' : '';
    yield printable(text.slice(0, text.length - rest.length).replaceAll('\r\n', '\n'));
  }
  yield printable(rest + decoder.decode());
}

/** Creates a claim. With `wait`, resolves when the claim leaves the queue, whether it was granted or not. */
export function claimRig(access: RigAccess, request: ClaimRequest, wait: boolean): Promise<RigClaim> {
  return withClient(access, async ({ client }) => {
    const claims = client.resource(resources.rigClaims);
    const { name, namespace, rig, labels, duration } = request;
    let claim = await claims.create({
      apiVersion: 'rig.hyperedge.dev/v1alpha1',
      kind: 'RigClaim',
      metadata: { namespace, ...(name === undefined ? { generateName: `${rig ?? 'rig'}-` } : { name }) },
      spec: {
        ...(rig === undefined ? {} : { rigName: rig }),
        ...(labels === undefined ? {} : { selector: { matchLabels: { ...labels } } }),
        ...(duration === undefined ? {} : { duration }),
      },
    });
    while (wait && claim.status?.phase === 'Queued') {
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      claim = await claims.get(claim.metadata?.name ?? '', namespace);
    }
    return claim;
  });
}

/** Deletes a claim. Resolves with false if it does not exist. */
export function releaseRig(access: RigAccess, name: string, namespace: string): Promise<boolean> {
  return withClient(access, async ({ client }) => {
    try {
      await client.resource(resources.rigClaims).delete(name, namespace);
      return true;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
  });
}

/** Switches the power of a rig. Resolves with the output of the command that the node ran. */
export function switchRig(access: RigAccess, target: RigTarget, action: PowerAction): Promise<string> {
  return withClient(access, async ({ client }) => {
    await requireTarget(client, target);
    const answer = await client.request<{ readonly message?: string }>(
      'POST',
      `${pathOf(target)}/power?action=${action}`,
    );
    return answer.message ?? '';
  });
}

/** Checks that the claim or rig exists, because a failed upgrade to a stream reports no reason. */
async function requireTarget(client: ApiClient, { name, namespace, isRig }: RigTarget): Promise<void> {
  try {
    if (isRig) await client.resource(resources.rigs).get(name);
    else await client.resource(resources.rigClaims).get(name, namespace);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    const what = isRig ? `rig "${name}" not found` : `rigclaim "${name}" not found in namespace "${namespace}"`;
    throw new CodedError('not-found', `${what}; see hyperedge rig list`);
  }
}

/** Connects the terminal to the console of a rig until one of them closes. In a terminal, Ctrl-] disconnects. */
export function openConsole(access: RigAccess, target: RigTarget): Promise<void> {
  return withClient(access, async ({ client, server, credentials }) => {
    await requireTarget(client, target);
    const { stdin, stdout } = process;
    const leave = new AbortController();
    const isTerminal = stdin.isTTY === true;
    if (isTerminal) stdin.setRawMode(true);
    try {
      await openRemoteTerminal({
        server,
        credentials: credentials(),
        signal: leave.signal,
        path: `${pathOf(target)}/console?stdin=true&stdout=true&tty=true`,
        input: keysOf(stdin, isTerminal, () => leave.abort()),
        output: (chunk) => stdout.write(chunk),
      });
    } finally {
      if (isTerminal) stdin.setRawMode(false);
      stdin.destroy();
    }
  });
}

const ESCAPE = 0x1d;

async function* keysOf(
  input: AsyncIterable<Uint8Array>,
  isTerminal: boolean,
  leave: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) {
    const at = isTerminal ? chunk.indexOf(ESCAPE) : -1;
    if (at < 0) {
      yield chunk;
      continue;
    }
    yield chunk.subarray(0, at);
    leave();
    return;
  }
}

function pathOf({ name, namespace, isRig }: RigTarget): string {
  const group = '/apis/rig.hyperedge.dev/v1alpha1';
  return isRig
    ? `${group}/rigs/${encodeURIComponent(name)}`
    : `${group}/namespaces/${encodeURIComponent(namespace)}/rigclaims/${encodeURIComponent(name)}`;
}
