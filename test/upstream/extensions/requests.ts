/** Helpers to write the requests of these parts. */
import type { Request } from '../../differential/exchange.ts';
import { GROUP } from './definitions.ts';

export const ROOT = `/apis/${GROUP}`;
export const WIDGETS_PATH = `${ROOT}/v1/namespaces/ns/widgets`;
export const GADGETS_PATH = `${ROOT}/v1/gadgets`;

export const TYPE = {
  json: 'application/json',
  yaml: 'application/yaml',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  jsonPatch: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export const send = (method: string, path: string, type: string, body: unknown): Request => ({
  method,
  path,
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

export const get = (path: string, accept?: string): Request => ({
  method: 'GET',
  path,
  ...(accept === undefined ? {} : { headers: { accept } }),
});

export const post = (path: string, body: unknown): Request => send('POST', path, TYPE.json, body);
export const put = (path: string, body: unknown): Request => send('PUT', path, TYPE.json, body);
export const patch = (path: string, type: string, body: unknown): Request => send('PATCH', path, type, body);
export const remove = (path: string, body?: unknown): Request =>
  body === undefined ? { method: 'DELETE', path } : send('DELETE', path, TYPE.json, body);
