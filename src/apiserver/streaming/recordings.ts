/**
 * `GET …/rigs/NAME/recordings`: the recordings of a rig's consoles on its present node and on the nodes of its
 * earlier uses; with `?file=NAME&node=NODE` one of them. Users of claims have no access, because a rig has recordings
 * of all its users.
 */
import { pipeline } from 'node:stream';
import { ApiError, errors, isApiError } from '../../api/meta/status.ts';
import { type Decoded, decodeJson, flag, list, number, object, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import { rigNodes } from '../../rigs/core/nodes.ts';
import { RIG_GROUP, RIG_VERSION } from '../../rigs/kinds/rig-types.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { IncomingMessage } from '../port.ts';
import { backendRequest, textOf } from './forward.ts';
import { nodeOfRig, type RigsContext, rigOf } from './rigs.ts';
import { kubeletOf } from './targets.ts';

const LIST = object({ items: list(object({ name: text, start: text, bytes: number, isOpen: flag })) });
type Recording = Decoded<typeof LIST>['items'][number];
const MAX_LIST_BYTES = 256 * 1024;
const MAX_FAILURE_TEXT = 8 * 1024;
/** Maximum number of nodes whose recordings are listed. */
const MAX_NODES = 10;
/** Longest wait for the list of a node. A node without power never answers. */
const LIST_MS = 4_000;
/**
 * Pattern of file names, which includes all names that a node gives to recordings. The node opens only names that it
 * lists.
 */
const FILE_NAME = /^[0-9TZ-]{1,64}\.log$/;

export async function sendRecordings(
  context: RigsContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
): Promise<void> {
  const file = info.query.get('file');
  if (file !== null && !FILE_NAME.test(file))
    throw errors.badRequest('file: must be the name of a recording; list them without the parameter');
  await context.cache.freshen();
  const rig = rigOf(context, info);
  const wanted = info.query.get('node');
  const nodes = rigNodes(rig).slice(0, MAX_NODES);
  if (wanted !== null && !nodes.includes(wanted))
    throw new ApiError('NotFound', `rig "${info.name}" has no use on that node; list its recordings without a node`);
  const [first = nodeOfRig(rig), ...others] = wanted === null ? nodes : [wanted];
  if (file === null) await sendList(context, exchange, info, [first, ...others]);
  else {
    exchange.longRunning = true;
    await sendFile(
      exchange,
      await requestOf(context, exchange, info, { node: first, signal: exchange.signal, file }),
      file,
    );
  }
}

/** Returns the successful response of a node. Throws the node's failure as an ApiError. */
async function requestOf(
  context: RigsContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
  { node, signal, file }: { readonly node: string; readonly signal: AbortSignal; readonly file?: string },
): Promise<IncomingMessage> {
  const path = `/rigs/${encodeURIComponent(info.name)}/recordings${file === undefined ? '' : `?file=${file}`}`;
  const target = kubeletOf(context, node, path);
  // The node logs the user. POST is used, because read access to nodes/proxy does not permit it.
  const headers = { 'x-remote-user': encodeURIComponent(exchange.user.name) };
  const answer = await context.backends.request(backendRequest(target, 'POST', headers, signal), undefined);
  const { statusCode: status = 502 } = answer;
  if (status !== 200) throw failureOf(status, await textOf(answer, MAX_FAILURE_TEXT), info);
  return answer;
}

/**
 * Sends the recordings of the nodes, and the failure of each node that does not respond. Throws the first failure if no
 * node responds.
 */
async function sendList(
  context: RigsContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
  nodes: readonly string[],
): Promise<void> {
  const results = await Promise.allSettled(nodes.map((node) => listOf(context, exchange, info, node)));
  const items: (Recording & { readonly node: string })[] = [];
  const failures: { readonly node: string; readonly message: string }[] = [];
  for (const [index, result] of results.entries()) {
    const node = nodes[index] ?? '';
    if (result.status === 'fulfilled') for (const item of result.value) items.push({ node, ...item });
    else failures.push({ node, message: messageOf(result.reason) });
  }
  const [reason] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length === nodes.length) throw reason;
  items.sort((a, b) => (stemOf(a) < stemOf(b) ? 1 : -1));
  exchange.sendJson(200, {
    kind: 'RigRecordingList',
    apiVersion: `${RIG_GROUP}/${RIG_VERSION}`,
    metadata: {},
    items,
    ...(failures.length === 0 ? {} : { failures }),
  });
}

/** File name without its extension. These names sort by time, including further files of the same session. */
const stemOf = ({ name }: Recording): string => name.replace(/\.log$/, '');

async function listOf(
  context: RigsContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
  node: string,
): Promise<readonly Recording[]> {
  const late = new AbortController();
  const timer = context.clock.setTimer(LIST_MS, () => late.abort());
  const signal = AbortSignal.any([exchange.signal, late.signal]);
  try {
    const answer = await requestOf(context, exchange, info, { node, signal });
    return itemsOf(await textOf(answer, MAX_LIST_BYTES));
  } catch (error) {
    if (late.signal.aborted)
      throw new ApiError('ServiceUnavailable', `node "${node}" does not answer within ${LIST_MS / 1_000} s`);
    if (isApiError(error, 'NotFound') && context.cache.kind('minions').get('', node) === undefined)
      throw new ApiError('NotFound', `node "${node}" is no longer in the cluster`);
    throw error;
  } finally {
    timer.cancel();
  }
}

function itemsOf(body: string): readonly Recording[] {
  try {
    return decodeJson(LIST, body, 'list of recordings').items;
  } catch (error) {
    throw new ApiError('BadGateway', `the kubelet returned no list of recordings: ${messageOf(error)}`);
  }
}

async function sendFile(exchange: Exchange, answer: IncomingMessage, file: string): Promise<void> {
  const { response } = exchange;
  await exchange.audit?.started(200);
  if (response.headersSent || response.destroyed) {
    answer.destroy();
    return;
  }
  const length = answer.headers['content-length'];
  response.writeHead(200, {
    ...exchange.headers('application/octet-stream'),
    ...(length === undefined ? {} : { 'content-length': length }),
    'content-disposition': `attachment; filename="${file}"`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  await new Promise<void>((resolve) => {
    pipeline(answer, response, () => resolve());
  });
}

function failureOf(status: number, body: string, { name }: ResourceRequestInfo): ApiError {
  const message = body.trim();
  if (status === 404) return new ApiError('NotFound', message);
  if (status === 429) return new ApiError('TooManyRequests', message);
  return new ApiError('InternalError', `rig "${name}": recordings: ${message}`);
}
