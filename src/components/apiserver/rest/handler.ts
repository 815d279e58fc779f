/** The signature of the handlers that dispatch.ts routes to. */
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { RestContext } from './context.ts';

/** Resolves when the answer is complete; rejects with an ApiError. */
export type Handler = (
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
) => Promise<void>;
