/**
 * Deadlines of requests. Source: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go and, for writes,
 * k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
 */
import { ApiError } from '../../api/meta/status.ts';
import { parseDuration } from '../../base/time/duration.ts';
import type { RequestInfo } from './request-info.ts';

/** Time limit for a write of one object. */
const WRITE_LIMIT_MS = 34_000;
const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete']);

/** Time limit in milliseconds: `?timeout=` of the client if it is less than `limitMs`. Throws 'BadRequest'. */
export function requestLimit({ query }: RequestInfo, limitMs: number): number {
  const text = query.size > 0 ? query.get('timeout') : null;
  if (text === null || text === '') return limitMs;
  const requestedMs = parseDuration(text);
  if (requestedMs === undefined) {
    const shown = JSON.stringify(text.slice(0, 64));
    throw new ApiError('BadRequest', `invalid timeout specified in the request URL - time: invalid duration ${shown}`);
  }
  return requestedMs > 0 && requestedMs < limitMs ? requestedMs : limitMs;
}

export function isWrite({ resource, verb }: RequestInfo): boolean {
  return resource && WRITES.has(verb);
}

/** Deadline of a write: the write limit, but not after `deadlineMs`. */
export function writeDeadline(startedMs: number, deadlineMs: number): number {
  return Math.min(deadlineMs, startedMs + WRITE_LIMIT_MS);
}

export function timeoutError(info: RequestInfo): ApiError {
  return isWrite(info)
    ? new ApiError('Timeout', 'request did not complete within requested timeout - context deadline exceeded')
    : new ApiError('Timeout', 'request did not complete within the allotted timeout');
}
