/** Sends a Scale as JSON or as a Table. */
import type { Scale } from '../../../api/generated/autoscaling/v1.ts';
import { scales } from '../../../api/kinds/cluster/subresources/index.ts';
import type { Exchange } from '../../http/exchange.ts';
import { negotiate } from '../../http/negotiate.ts';
import type { ServerContext } from '../context.ts';
import { columnDefinitions, includeObjectOf, rowOf, table } from '../reads/representations.ts';

export function sendScale(context: Pick<ServerContext, 'clock'>, exchange: Exchange, scale: Scale): void {
  const form = negotiate(exchange.request.headers.accept, { protobuf: true });
  if (form.as !== 'Table') {
    exchange.sendObject(200, scale);
    return;
  }
  const include = includeObjectOf(exchange.info.query);
  const rowForm = { form, include, nowMs: context.clock.nowMs() };
  const row = rowOf(scales, scale, () => JSON.stringify(scale), rowForm);
  const metadata = JSON.stringify({ resourceVersion: scale.metadata?.resourceVersion ?? '' });
  exchange.sendBytes(200, Buffer.from(table(form, metadata, columnDefinitions(scales), [row])));
}
