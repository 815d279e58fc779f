/**
 * Recorded requests of a real client. Values that the server chose (UIDs, revisions, generated names, continue tokens)
 * are replaced by marks such as `<<3>>`. The step whose response contained the value has its location, so a script can
 * be sent to any server.
 */

import { decodeProtobuf, isProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { envelope } from '../../../src/apiserver/http/protobuf/encode.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import type { Reply, Request } from '../exchange.ts';

/** Location of a chosen value in a response. `at` is a JSON pointer. */
export interface Learned {
  readonly mark: number;
  readonly at: string;
}

export interface Step {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Binary body in base64. It contains the values of the recorded server, not marks. */
  readonly bytes?: string;
  /**
   * Values in `bytes` that are replaced by those of the marks. `revision` is the mark of the object's resourceVersion.
   */
  readonly stands?: readonly { readonly value: string; readonly mark: number }[];
  readonly revision?: number;
  readonly learns?: readonly Learned[];
}

/** Values that the server chose, by mark. */
export type Chosen = Map<number, string>;

export const isWatch = ({ path }: Pick<Step, 'path'>): boolean => /[?&]watch=(?:true|1)\b/.test(path);

/** Decodes a JSON or protobuf response; undefined for other types. */
export function documentOf(reply: Pick<Reply, 'bytes' | 'type'>): unknown {
  try {
    if (isProtobuf(reply.bytes)) return readList(reply.bytes) ?? decodeProtobuf(reply.bytes);
    if (reply.type.includes('json')) return JSON.parse(reply.bytes.toString('utf8'));
  } catch {
    // Some kinds have no protobuf encoding here, and a list of watch events is not a single document.
  }
  return undefined;
}

/** Decodes a list: it has an envelope, and its items are messages without one. */
function readList(bytes: Buffer): object | undefined {
  const { apiVersion, kind, raw } = readEnvelope(bytes.subarray(MAGIC_LENGTH));
  if (!kind.endsWith('List')) return undefined;
  const items: object[] = [];
  let resourceVersion = '';
  const list = new Reader(raw);
  for (let field = list.field(); field !== 0; field = list.field()) {
    if (field === 1) {
      const meta = new Reader(list.bytes());
      for (let part = meta.field(); part !== 0; part = meta.field())
        if (part === 2) resourceVersion = meta.string();
        else meta.skip();
    } else if (field === 2) {
      const {
        apiVersion: _version,
        kind: _kind,
        ...item
      } = decodeProtobuf(envelope(apiVersion, kind.slice(0, -'List'.length), list.bytes()));
      items.push(item);
    } else list.skip();
  }
  return { apiVersion, kind, metadata: { resourceVersion }, items };
}

function readEnvelope(bytes: Buffer): { apiVersion: string; kind: string; raw: Buffer } {
  const found = { apiVersion: '', kind: '', raw: Buffer.alloc(0) as Buffer };
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) {
      const meta = new Reader(reader.bytes());
      for (let part = meta.field(); part !== 0; part = meta.field())
        if (part === 1) found.apiVersion = meta.string();
        else if (part === 2) found.kind = meta.string();
        else meta.skip();
    } else if (field === 2) found.raw = Buffer.from(reader.bytes());
    else reader.skip();
  }
  return found;
}

/** The value at a JSON pointer. */
export function valueAt(document: unknown, pointer: string): unknown {
  let value = document;
  for (const part of pointer.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return value;
}

export function learn(step: Step, reply: Reply, chosen: Chosen): void {
  if (step.learns === undefined) return;
  const document = documentOf(reply);
  for (const { mark, at } of step.learns) {
    const value = valueAt(document, at);
    if (typeof value === 'string') chosen.set(mark, value);
  }
}

const MARK = /<<(\d+)>>/g;

/** Request of a step with the values that this server chose. A mark without a value becomes `0`. */
export function requestOf(step: Step, chosen: Chosen): Request {
  const fill = (text: string): string => text.replaceAll(MARK, (_, mark) => chosen.get(Number(mark)) ?? '0');
  const { method, headers } = step;
  const request = { method, path: fill(step.path), headers };
  if (step.body !== undefined) return { ...request, body: fill(step.body) };
  if (step.bytes === undefined) return request;
  let body = Buffer.from(step.bytes, 'base64');
  for (const { value, mark } of step.stands ?? []) {
    const now = chosen.get(mark);
    if (now !== undefined && now.length === value.length) body = replaceAll(body, value, now);
  }
  const revision = step.revision === undefined ? undefined : chosen.get(step.revision);
  return { ...request, body: revision === undefined ? body : withRevision(body, revision) };
}

/** Replaces values by others of the same length, so the lengths in the enclosing messages remain valid. */
function replaceAll(bytes: Buffer, value: string, now: string): Buffer<ArrayBuffer> {
  const copy = Buffer.from(bytes);
  for (let at = copy.indexOf(value); at >= 0; at = copy.indexOf(value, at + value.length))
    copy.write(now, at, 'latin1');
  return copy;
}

const MAGIC_LENGTH = 4;
/** Field numbers of Envelope.raw, object.metadata and metadata.resourceVersion. */
const REVISION_PATH = [2, 1, 6];

function withRevision(body: Buffer, revision: string): Buffer {
  const magic = body.subarray(0, MAGIC_LENGTH);
  return Buffer.concat([magic, replaceField(body.subarray(MAGIC_LENGTH), REVISION_PATH, Buffer.from(revision))]);
}

/** Replaces the value at a path of field numbers. All other bytes stay unchanged. */
function replaceField(message: Buffer, [number, ...rest]: readonly number[], value: Buffer): Buffer {
  const parts: Buffer[] = [];
  const reader = new Reader(message);
  for (let start = 0, field = reader.field(); field !== 0; start = reader.position, field = reader.field()) {
    if (field !== number) {
      reader.skip();
      parts.push(message.subarray(start, reader.position));
      continue;
    }
    const own = reader.bytes();
    const now = rest.length === 0 ? value : replaceField(own, rest, value);
    parts.push(
      new Writer()
        .varint(field * 8 + 2)
        .varint(now.length)
        .finish(),
      now,
    );
  }
  return Buffer.concat(parts);
}

/** Formats the script: one line with the distinct sets of headers, then one line for each step. */
export function formatScript(steps: readonly Step[]): string {
  const headers: string[] = [];
  const lines = steps.map(({ headers: own, ...step }) => {
    const text = JSON.stringify(own);
    if (!headers.includes(text)) headers.push(text);
    return JSON.stringify({ ...step, headers: headers.indexOf(text) });
  });
  return [`[${headers.join(',')}]`, ...lines, ''].join('\n');
}

export function parseScript(text: string): Step[] {
  const [head = '[]', ...lines] = text.split('\n').filter((line) => line !== '');
  const headers = JSON.parse(head) as Record<string, string>[];
  return lines.map((line) => {
    const step = JSON.parse(line) as Omit<Step, 'headers'> & { headers: number };
    return { ...step, headers: headers[step.headers] ?? {} };
  });
}
