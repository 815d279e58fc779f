/**
 * `GET …/rigs/NAME/recordings`: the recordings of a rig's consoles on its present node; with `?file=NAME` one of them.
 * Users of claims have no access, because a rig has recordings of all its users.
 */
import { pipeline } from 'node:stream';
import { ApiError, errors } from '../../api/meta/status.ts';
import { decodeJson, flag, list, number, object, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import { RIG_GROUP, RIG_VERSION } from '../../rigs/kinds/rig-types.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { IncomingMessage } from '../port.ts';
import { backendRequest } from './forward.ts';
import { nodeOfRig, type RigsContext, rigOf } from './rigs.ts';
import { kubeletOf } from './targets.ts';

const LIST = object({ items: list(object({ name: text, start: text, bytes: number, isOpen: flag })) });
const MAX_LIST_BYTES = 256 * 1024;
const MAX_FAILURE_TEXT = 8 * 1024;
/** Names that the node gives to recordings, and more. It opens listed names only. */
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
  const path = `/rigs/${encodeURIComponent(info.name)}/recordings${file === null ? '' : `?file=${file}`}`;
  const target = kubeletOf(context, nodeOfRig(rig), path);
  exchange.longRunning = file !== null;
  // The user is for the log of the node. The method is one that read access to nodes/proxy does not permit.
  const headers = { 'x-remote-user': encodeURIComponent(exchange.user.name) };
  const answer = await context.backends.request(backendRequest(target, 'POST', headers, exchange.signal), undefined);
  const { statusCode: status = 502 } = answer;
  if (status !== 200) throw failureOf(status, await textOf(answer, MAX_FAILURE_TEXT), info);
  if (file === null) await sendList(exchange, await textOf(answer, MAX_LIST_BYTES));
  else await sendFile(exchange, answer, file);
}

async function sendList(exchange: Exchange, body: string): Promise<void> {
  let items: readonly unknown[];
  try {
    ({ items } = decodeJson(LIST, body, 'list of recordings'));
  } catch (error) {
    throw new ApiError('BadGateway', `the kubelet returned no list of recordings: ${messageOf(error)}`);
  }
  exchange.sendJson(200, { kind: 'RigRecordingList', apiVersion: `${RIG_GROUP}/${RIG_VERSION}`, metadata: {}, items });
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

/** At most `limit` characters of the body. */
async function textOf(answer: IncomingMessage, limit: number): Promise<string> {
  let body = '';
  for await (const chunk of answer) {
    body += String(chunk);
    if (body.length > limit) break;
  }
  answer.destroy();
  return body.slice(0, limit);
}
