/** GET and LIST of kinds whose objects are computed for each request. They have no protobuf form. */
import type { Exchange } from '../http/exchange.ts';
import { negotiate, negotiateList } from '../http/negotiate.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import type { ReadContext } from '../rest/context.ts';
import { sendObject } from '../rest/reads/get.ts';
import { sendComputed } from '../rest/reads/list.ts';
import { type ListOptions, matcherOf, parseListOptions } from '../rest/reads/list-options.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';

export interface ComputedReads {
  /** Resolves when the sources of the objects are up to date. */
  fresh(): Promise<unknown> | undefined;
  /** Object of the requested name. Throws 'NotFound'. */
  get(): CachedObject;
  /** Objects of the requested namespace, or of all. The caller applies the selectors of `options`. */
  list(options: ListOptions): readonly CachedObject[];
}

/** Sends the object or the list that the request names. Throws 'MethodNotAllowed' for other verbs. */
export async function sendReads(
  context: ReadContext,
  exchange: Exchange,
  { kind, info }: { readonly kind: ServedKind; readonly info: ResourceRequestInfo },
  reads: ComputedReads,
): Promise<void> {
  const { accept } = exchange.request.headers;
  if (info.verb === 'get') {
    const form = negotiate(accept, { protobuf: false });
    await reads.fresh();
    sendObject(context, exchange, { kind, object: reads.get(), form });
  } else if (info.verb === 'list') {
    const form = negotiateList(accept, { protobuf: false });
    const options = parseListOptions(kind, info.query);
    await reads.fresh();
    const matches = matcherOf(kind, options) ?? (() => true);
    await sendComputed(context, exchange, kind, form, reads.list(options).filter(matches));
  } else throw methodNotAllowed();
}
