/** GET and LIST of `metrics.k8s.io`. Source: sigs.k8s.io/metrics-server/pkg/api. */

import type { Pod } from '../../../api/generated/core/v1.ts';
import { METRICS_GROUP } from '../../../api/kinds/nodes/nodemetrics/index.ts';
import { errors } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { usageQuantities, windowText } from '../../../metrics/core/usage.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { BackendContext, ReadContext, ServerContext } from '../../rest/context.ts';
import { CachedObject } from '../../watch-cache/cached-object.ts';
import { sendReads } from '../computed-reads.ts';
import { MetricsCollector } from './collector.ts';

type HandlerContext = BackendContext & ReadContext & Pick<ServerContext, 'certificates' | 'config' | 'log'>;

const collectors = new WeakMap<object, MetricsCollector>();

function collectorOf(context: HandlerContext): MetricsCollector {
  let collector = collectors.get(context);
  if (collector === undefined) {
    collector = new MetricsCollector(context);
    collectors.set(context, collector);
  }
  return collector;
}

export const isResourceMetrics = ({ definition }: ServedKind): boolean =>
  definition.group === METRICS_GROUP && definition.custom === undefined;

export function resourceMetrics(
  context: HandlerContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { name, namespace } = info;
  const collector = collectorOf(context);
  const of = kind.plural === 'nodes' ? nodeMetricsOf : podMetricsOf;
  const stored = context.cache.kind(kind.plural === 'nodes' ? 'minions' : 'pods');
  return sendReads(
    context,
    exchange,
    { kind, info },
    {
      fresh: () => Promise.all([context.cache.freshen(), collector.fresh()]),
      get: () => {
        const subject = stored.get(namespace, name);
        const found = subject === undefined ? undefined : of(context, collector, kind, subject);
        if (found === undefined) throw errors.notFound(kind, namespace === '' ? name : `${namespace}/${name}`);
        return found;
      },
      list: (options) =>
        stored
          .listSelected(namespace === '' ? undefined : namespace, options.labels)
          .flatMap((subject) => of(context, collector, kind, subject) ?? []),
    },
  );
}

function nodeMetricsOf(
  context: HandlerContext,
  collector: MetricsCollector,
  kind: ServedKind,
  node: CachedObject,
): CachedObject | undefined {
  const usage = collector.node(node.name);
  if (usage === undefined) return undefined;
  return computed(context, kind, node, {
    timestamp: timestamp(usage.atMs),
    window: windowText(usage.windowMs),
    usage: usageQuantities(usage),
  });
}

function podMetricsOf(
  context: HandlerContext,
  collector: MetricsCollector,
  kind: ServedKind,
  object: CachedObject,
): CachedObject | undefined {
  const pod = object.shared<Pod>();
  const usages = collector.pod(pod.spec?.nodeName ?? '', object.key);
  const declared = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const containers = declared.flatMap(({ name }) => {
    const usage = usages.get(name);
    return usage === undefined ? [] : [{ name, usage: usageQuantities(usage) }];
  });
  // Readings may belong to an earlier pod of the same name.
  const measured = [...usages.values()].filter(
    ({ atMs }) => atMs >= Date.parse(String(pod.metadata?.creationTimestamp ?? '')),
  );
  const [first] = measured;
  if (containers.length === 0 || first === undefined || pod.status?.phase !== 'Running') return undefined;
  const earliest = measured.reduce((one, other) => (other.atMs < one.atMs ? other : one), first);
  return computed(context, kind, object, {
    timestamp: timestamp(earliest.atMs),
    window: windowText(earliest.windowMs),
    containers,
  });
}

function computed(context: HandlerContext, kind: ServedKind, of: CachedObject, body: object): CachedObject {
  const labels = of.labels();
  const text = JSON.stringify({
    kind: kind.kind,
    apiVersion: kind.apiVersion,
    metadata: {
      name: of.name,
      ...(of.namespace === '' ? {} : { namespace: of.namespace }),
      creationTimestamp: timestamp(context.clock.nowMs()),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
    ...body,
  });
  return new CachedObject(of.namespace, of.name, Buffer.from(text), 0, 0);
}
