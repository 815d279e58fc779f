/** Signature of the handlers to which dispatch.ts routes requests. */
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { RestContext } from './context.ts';

/** Handles a request. Resolves when the response is complete. Rejects with an ApiError. */
export type Handler = (
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
) => Promise<void>;
